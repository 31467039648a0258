// LB_NAME, a network in WebAssembly. It runs in browsers and in Node; no other file is needed but LB_NAME.wasm and
// LB_NAME.weights, beside this one.
//
//   import { load } from "./LB_NAME.mjs";
//   const program = await load();
//   program.inputs[LB_FIRST_INPUT].data.set(values);
//   program.run();
//   program.outputs[LB_FIRST_OUTPUT].data
//
// `data` are typed arrays over the memory that the kernels use: nothing is copied. They stay the same for all runs.
// `inputNames` and `outputNames` are in the order of the model.

const PROGRAM = LB_PROGRAM;

const ARRAYS = {
  bool: Uint8Array, uint8: Uint8Array, int8: Int8Array, uint16: Uint16Array, int16: Int16Array,
  uint32: Uint32Array, int32: Int32Array, uint64: BigUint64Array, int64: BigInt64Array,
  float32: Float32Array, float64: Float64Array,
  float16: globalThis.Float16Array ?? Uint16Array, // their bits, where the engine has no such arrays
};

// Functions of C, by their names there: JavaScript's, but for those that it has not or has otherwise.
const C_FUNCTIONS = {
  exp2: (x) => 2 ** x,
  fmod: (x, y) => x % y,
  pow: (x, y) => (x === 1 || (x === -1 && Math.abs(y) === Infinity) ? 1 : x ** y),
};

function cFunction(name) {
  const plain = name.replace(/f$/, ""); // of floats: WebAssembly rounds what it gets
  return C_FUNCTIONS[name] ?? C_FUNCTIONS[plain] ?? Math[name] ?? Math[plain];
}

/** Loads the program. `folder` is the URL of the one with its files, in relation to this module's, which it is itself. */
export async function load(folder = ".") {
  const files = new URL(`${folder}/`, import.meta.url);
  const memory = new WebAssembly.Memory({ initial: PROGRAM.pages, maximum: PROGRAM.pages });
  const imports = {
    __linear_memory: memory,
    __stack_pointer: new WebAssembly.Global({ value: "i32", mutable: true }, PROGRAM.stackEnd),
  };
  const [code, weights] = await Promise.all(["wasm", "weights"].map((end) => content(files, end)));
  const module = await WebAssembly.compile(code);
  for (const { name, kind } of WebAssembly.Module.imports(module)) {
    if (kind === "function") {
      imports[name] = cFunction(name);
    }
  }
  const instance = await WebAssembly.instantiate(module, { env: imports });
  for (const [from, to, length] of PROGRAM.weights) {
    new Uint8Array(memory.buffer, to, length).set(weights.subarray(from, from + length));
  }
  return new Program(memory, instance.exports);
}

/** Returns the bytes of the file that ends with `end`, which is of the same export as this module. */
async function content(files, end) {
  const url = new URL(`LB_NAME.${end}`, files), found = await bytes(url);
  const subtle = globalThis.crypto?.subtle; // only where the page is secure
  if (subtle) {
    const digest = new Uint8Array(await subtle.digest("SHA-256", found));
    if (Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("") !== PROGRAM.sha256[end]) {
      throw new Error(`${url} is of another export than this module: copy the three files together`);
    }
  }
  return found;
}

async function bytes(url) {
  if (url.protocol === "file:") {
    return new Uint8Array(await (await import("node:fs/promises")).readFile(url));
  }
  const answer = await fetch(url);
  if (!answer.ok) {
    throw new Error(`${url}: ${answer.status} ${answer.statusText}`);
  }
  return new Uint8Array(await answer.arrayBuffer());
}

class Program {
  /** `inputs` and `outputs`, by name: { dtype, shape, data }. */
  inputs;
  outputs;
  /** Their names, in the order of the model. */
  inputNames = PROGRAM.inputs.map(({ name }) => name);
  outputNames = PROGRAM.outputs.map(({ name }) => name);
  #kernels;

  constructor(memory, exports) {
    this.#kernels = PROGRAM.kernels.map((name) => exports[name]);
    const words = new BigUint64Array(memory.buffer, PROGRAM.arguments, PROGRAM.words.length);
    PROGRAM.words.forEach((address, i) => { words[i] = BigInt(address); });
    this.inputs = tensors(memory, PROGRAM.inputs);
    this.outputs = tensors(memory, PROGRAM.outputs);
    this.#do(PROGRAM.prepared);
  }

  /** Computes the outputs of the present inputs. */
  run() {
    this.#do(PROGRAM.run);
  }

  #do(steps) {
    for (const [kernel, word, tasks] of steps) {
      this.#kernels[kernel](PROGRAM.arguments + 8 * word, 0n, BigInt(tasks));
    }
  }
}

function tensors(memory, described) {
  const made = described.map(({ name, dtype, shape, address }) => {
    const count = shape.reduce((product, extent) => product * extent, 1);
    return [name, Object.freeze({ dtype, shape, data: new ARRAYS[dtype](memory.buffer, address, count) })];
  });
  return Object.freeze(Object.fromEntries(made));
}
