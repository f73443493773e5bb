// Runs Perfetto's trace processor (WebAssembly) behind a pipe: requests arrive on stdin and answers
// leave on stdout, both as a TraceProcessorRpcStream. The argument is the folder with
// engine_bundle.js and the .wasm files. The bundle is built for a web worker, so this file defines
// the globals of a worker.
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

// Without a global `process`, the bundle assumes that it runs in a worker.
const { process: node } = globalThis;
delete globalThis.process;
vm.runInThisContext(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"));
setTimeout(() => {
  globalThis.onmessage({ data: port });
  node.stdin.on("data", (chunk) => port.onmessage({ data: new Uint8Array(chunk) }));
}, 0);
