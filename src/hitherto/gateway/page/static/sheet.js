// A sheet, or a checkpoint, as its own page.

import {follow} from "./changes.js";
import {away, begin} from "./shared.js";
import {beginCopying} from "./clipboard.js";
import {beginSheets} from "./sheets.js";

const session = document.getElementById("main").dataset.session;

beginCopying();
beginSheets();
begin({refresh: () => {}, keys: {u: () => location.assign(`/s/${session}`)}});
const wanted = location.hash.startsWith("#m-") ? document.getElementById(location.hash.slice(1)) : null;
wanted?.scrollIntoView();
follow({heard: () => {}, away}); // notices when the server is away, or the sign-in ended
