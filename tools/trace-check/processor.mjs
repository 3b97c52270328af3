// Perfetto's trace processor in WebAssembly, driven from Node: load a trace, ask it in SQL.
//
// Its worker script is run as it is, in the surroundings that a browser's worker would give it.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

// TraceProcessorRpc: fields and methods.
const RPC = { stream: 1, seq: 1, request: 2, fatalError: 5, appendData: 101, query: 103 };
const REPLY = { append: 201, query: 203, error: 2 };
const METHOD = { append: 1, finalize: 2, query: 3 };
const CHUNK = 16 << 20;

function varint(value) {
  const bytes = [];
  let rest = BigInt(value);
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  return Buffer.from([...bytes, Number(rest)]);
}
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) =>
  Buffer.concat([varint((field << 3) | 2), varint(value.length), value]);

function readVarint(buffer, at) {
  let value = 0n;
  for (let shift = 0n; ; shift += 7n) {
    const byte = buffer[at++];
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return [BigInt.asIntN(64, value), at];
  }
}

/** The fields of a message: [number, value]; numbers as BigInt, the rest as Buffer. */
function* fields(buffer) {
  for (let at = 0; at < buffer.length; ) {
    let tag, value;
    [tag, at] = readVarint(buffer, at);
    const length = { 1n: 8, 5n: 4 }[tag & 7n];
    if ((tag & 7n) === 0n) {
      [value, at] = readVarint(buffer, at);
    } else if (length) {
      value = buffer.subarray(at, (at += length));
    } else {
      [value, at] = readVarint(buffer, at);
      value = buffer.subarray(at, (at += Number(value)));
    }
    yield [Number(tag >> 3n), value];
  }
}

/** The rows of one QueryResult batch, given the columns' names. */
function* rows(batch, columns) {
  let kinds = Buffer.alloc(0);
  const ints = [], floats = [], strings = [];
  for (const [field, value] of fields(batch)) {
    if (field === 1) kinds = value;
    else if (field === 2) for (let at = 0, v; at < value.length; ints.push(v)) [v, at] = readVarint(value, at);
    else if (field === 3) for (let at = 0; at < value.length; at += 8) floats.push(value.readDoubleLE(at));
    else if (field === 5) strings.push(...value.toString("utf8").split("\0").slice(0, -1));
  }
  const cell = { 1: () => null, 2: () => ints.shift(), 3: () => floats.shift(), 4: () => strings.shift() };
  for (let at = 0; at < kinds.length; at += columns.length) {
    yield Object.fromEntries(columns.map((name, i) => [name, cell[kinds[at + i]]()]));
  }
}

/** Starts the trace processor found under `webDist`. */
export async function start(webDist) {
  const version = readdirSync(webDist).find((name) => /^v\d/.test(name));
  const home = join(webDist, version);
  const replies = [];
  const port = { postMessage: (reply) => replies.push(Buffer.from(reply)) };
  const self = { location: { href: `http://localhost/${version}/engine_bundle.js` } };
  await new Promise((ready, failed) => {
    // The engine is ready for requests once it has called this function.
    function Instance(module, imports) {
      const { exports } = new WebAssembly.Instance(module, imports);
      const trace_processor_rpc_init = (...args) => {
        setImmediate(ready);
        return exports.trace_processor_rpc_init(...args);
      };
      return { exports: { ...exports, trace_processor_rpc_init } };
    }
    class XMLHttpRequest {
      open(_method, url) {
        this.url = url;
      }
      send() {
        this.response = readFileSync(join(home, this.url.split("/").pop()));
      }
    }
    const surroundings = {
      self,
      WorkerGlobalScope: class {},
      WebAssembly: Object.create(WebAssembly, { Instance: { value: Instance } }),
      XMLHttpRequest,
      process: undefined,
      window: undefined,
      document: undefined,
      console: { ...console, log() {}, warn() {}, info() {} },
    };
    try {
      const script = readFileSync(join(home, "engine_bundle.js"), "utf8");
      new Function(...Object.keys(surroundings), script)(...Object.values(surroundings));
    } catch (error) {
      failed(error);
    }
  });
  self.onmessage({ data: port });
  return { version, ...connection(port, replies) };
}

function connection(port, replies) {
  let seq = 0;
  function request(method, ...args) {
    replies.length = 0;
    const message = Buffer.concat([number(RPC.seq, ++seq), number(RPC.request, method), ...args]);
    port.onmessage({ data: new Uint8Array(bytes(RPC.stream, message)) });
    const messages = [...fields(Buffer.concat(replies))].map(([, rpc]) => [...fields(rpc)]);
    const fatal = messages.flat().find(([field]) => field === RPC.fatalError);
    if (fatal) throw new Error(`trace processor: ${fatal[1]}`);
    return messages.flat();
  }
  const failIn = (reply) => {
    const error = [...fields(reply)].find(([field]) => field === REPLY.error);
    if (error && error[1].length) throw new Error(`trace processor: ${error[1]}`);
  };
  return {
    load(trace) {
      for (let at = 0; at < trace.length; at += CHUNK) {
        const reply = request(METHOD.append, bytes(RPC.appendData, trace.subarray(at, at + CHUNK)));
        reply.filter(([field]) => field === REPLY.append).forEach(([, r]) => failIn(r));
      }
      request(METHOD.finalize);
    },
    query(sql) {
      const columns = [], found = [];
      for (const [field, reply] of request(METHOD.query, bytes(RPC.query, bytes(1, Buffer.from(sql))))) {
        if (field !== REPLY.query) continue;
        failIn(reply);
        for (const [inner, value] of fields(reply)) {
          if (inner === 1) columns.push(value.toString("utf8"));
          if (inner === 3) found.push(...rows(value, columns));
        }
      }
      return found;
    },
  };
}
