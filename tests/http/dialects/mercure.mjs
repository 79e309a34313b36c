// Listens to a Mercure hub with an EventSource from npm and prints a line of JSON for each update.
// node mercure.mjs <hub> <last id or ""> <topic>...

import { EventSource } from "eventsource";

const [hub, last, ...topics] = process.argv.slice(2);
const url = new URL(hub);
for (const topic of topics) url.searchParams.append("topic", topic);
if (last) url.searchParams.append("lastEventID", last);
const source = new EventSource(url);
const told = (kind) => (event) => console.log(JSON.stringify({ kind, id: event.lastEventId, data: event.data }));
source.onopen = () => console.log(JSON.stringify({ kind: "open" }));
source.onmessage = told("message");
source.addEventListener("alarm", told("alarm"));
