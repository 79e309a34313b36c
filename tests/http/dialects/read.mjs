// Reads a Linked Data Event Stream with a client from npm and prints a line of JSON for each member.
// node read.mjs <view> [follow] [ascending] [auth=<name>:<password>]

import { enhanced_fetch, intoConfig, replicateLDES } from "ldes-client";

const [url, ...said] = process.argv.slice(2);
// One request at a time: this client forgets, while it follows, that it is just reading a page, and reads it twice at once.
const config = intoConfig({ url, polling: said.includes("follow"), pollInterval: 50, concurrentFetches: 1 });
const auth = said.find((each) => each.startsWith("auth="))?.slice("auth=".length);
if (auth) config.fetch = enhanced_fetch({ auth: { auth, host: new URL(url).host, type: "basic" }, concurrent: 1 });
const client = replicateLDES(config, said.includes("ascending") ? "ascending" : "none");
client.on("error", (error) => {
  console.error(error);
  process.exit(1);
});
const reader = client.stream({ highWaterMark: 10 }).getReader();
for (let read = await reader.read(); !read.done; read = await reader.read()) {
  const { id, quads, timestamp } = read.value;
  const graph = quads.filter((quad) => quad.graph.value === id.value).map((quad) => quad.object.value);
  console.log(JSON.stringify({ id: id.value, graph, quads: quads.length, timestamp }));
}
