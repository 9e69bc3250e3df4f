/** Prints how much JavaScript the first page needs before anything is drawn, gzip, from what was built. */
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const dist = new URL("./dist/", import.meta.url);
const html = readFileSync(new URL("index.html", dist), "utf8");
const files = [...new Set(html.match(/(?<=(?:src|href)="\/)[^"]+\.js(?=")/g))];
const bytes = files.map((name) => gzipSync(readFileSync(new URL(name, dist))).length).reduce((sum, each) => sum + each, 0);
console.log(`bench web_initial_js ${(bytes / 1024).toFixed(1)} KB`);
