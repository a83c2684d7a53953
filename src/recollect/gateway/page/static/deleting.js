// Deleting: the page waits ten seconds, in which one can take it back, before it asks the server. Who leaves has deleted nothing.

import {call} from "./wire.js";
import {complain, say} from "./shared.js";

const SECONDS = 10;

export function deleteSoon(ids, {hide, done}) {
  const many = ids.length === 1 ? "this session" : `${ids.length} sessions`;
  let left = SECONDS;
  hide(true);
  const back = () => {
    clearInterval(ticking);
    hide(false);
    say("Nothing was deleted.");
  };
  const tell = () => say(`Deleting ${many} in ${left} s.`, {stays: true, action: {text: "Take it back", work: back}});
  const ticking = setInterval(async () => {
    left -= 1;
    if (left > 0) return tell();
    clearInterval(ticking);
    try {
      for (const id of ids) await call("session.delete", {session_id: id});
      say("Deleted.");
      done();
    } catch (error) {
      hide(false);
      complain(error);
    }
  }, 1_000);
  tell();
}
