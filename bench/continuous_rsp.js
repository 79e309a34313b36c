// rsp-js beside `bench continuous`: one window query over the same stream.
//
// Takes the query as a line of JSON, then a line for each event: milliseconds, a tab, and its triples as N-Triples.
// Tells a line of JSON for each window whose answer is complete: the time of the newest event in it, how many triples it
// held, how many rows there were, and milliseconds from the first event to then.
"use strict";

const readline = require("readline");
const { Parser } = require("n3");
const { RSPEngine } = require("rsp-js");

// It says something of every triple and every window that is open, which would take most of its time.
console.debug = () => {};
console.log = () => {};

const parser = new Parser();
const reading = readline.createInterface({ input: process.stdin });
let engine, stream, began;

function start(query) {
  engine = new RSPEngine(query);
  for (const window of engine.windows) {
    // It moves by a step with every row that is told, and windows then open in wrong places.
    Object.defineProperty(window, "t0", { get: () => 0, set: () => {} });
  }
  engine.logger.info = () => {};
  const evaluate = engine.r2r.execute.bind(engine.r2r);
  engine.r2r.execute = async (content) => {
    const newest = content.last_time_changed(), triples = content.len();
    const rows = await evaluate(content);
    let count = 0;
    rows.on("data", () => { count += 1; });
    rows.on("end", () => {
      process.stdout.write(JSON.stringify({ newest, triples, rows: count, at: Date.now() - began }) + "\n");
    });
    return rows;
  };
  engine.register();
  stream = engine.getStream(engine.get_all_streams()[0]);
  process.stdout.write(JSON.stringify({ ready: true }) + "\n");
}

reading.on("line", (line) => {
  if (!engine) {
    start(JSON.parse(line).query);
    return;
  }
  began = began || Date.now();
  const tab = line.indexOf("\t");
  const time = Number(line.slice(0, tab));
  for (const quad of parser.parse(line.slice(tab + 1))) stream.add(quad, time);
});
