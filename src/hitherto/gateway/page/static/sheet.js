// A sheet, or a checkpoint, as a page of its own.

import {follow} from "./following.js";
import {away, begin} from "./shared.js";
import {beginCopying} from "./copying.js";
import {beginSheets} from "./sheets.js";

const session = document.getElementById("main").dataset.session;

beginCopying();
beginSheets();
begin({refresh: () => {}, keys: {u: () => location.assign(`/s/${session}`)}});
const wanted = location.hash.startsWith("#m-") ? document.getElementById(location.hash.slice(1)) : null;
wanted?.scrollIntoView();
follow({heard: () => {}, away}); // whether the server is there, and knows us
