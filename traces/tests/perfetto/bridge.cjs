// Perfetto's trace processor, as WebAssembly, behind a pipe: requests come in on stdin and answers
// go out on stdout, both as a TraceProcessorRpcStream. The argument is the folder that holds
// engine_bundle.js and the .wasm files; the bundle is made for a web worker, so it gets what a
// worker has.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

const folder = process.argv[2];
console.log = console.error;

class XMLHttpRequest {
  open(_method, url) {
    this.url = url;
  }
  send() {
    const bytes = fs.readFileSync(path.join(folder, path.basename(this.url)));
    this.status = 200;
    this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
    this.onload?.();
  }
}

globalThis.self = globalThis;
globalThis.XMLHttpRequest = XMLHttpRequest;
globalThis.location = { href: `file://${folder}/engine_bundle.js` };
globalThis.WorkerGlobalScope = Object;
globalThis.importScripts = () => {};

const write = (bytes) => {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += fs.writeSync(1, bytes, at);
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
};
const port = { postMessage: write };

// In a browser the bundle finds no `process`, and takes that for the sign of a worker.
const { process: node } = globalThis;
delete globalThis.process;
vm.runInThisContext(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"));
setTimeout(() => {
  globalThis.onmessage({ data: port });
  node.stdin.on("data", (chunk) => port.onmessage({ data: new Uint8Array(chunk) }));
}, 0);
