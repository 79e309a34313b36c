// Reads an RDF Message Log with N3.js: a line of JSON for each message, with its quads.
// node messages.mjs FOLDER_OF_N3 FORMAT < log
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [, , folder, format] = process.argv;
const N3 = createRequire(folder + "/")("n3");
const parser = new N3.Parser({ format, directives: ["message"], parseUnsupportedVersions: true });
const written = (quad) => new N3.Writer({ format: "N-Quads" }).quadsToString([quad]).trim();
let quads = [];
const flush = () => {
  console.log(JSON.stringify(quads));
  quads = [];
};
parser.parse(readFileSync(0, "utf8"), {
  onQuad: (error, quad) => {
    if (error) throw error;
    if (quad) quads.push(written(quad));
    else if (quads.length) flush();
  },
  onDirective: flush,
});
