'use strict'

// What transforms of trace.intercept do: what they may do, and what they may not.

const { types } = require('node:util')
const { fail, makers: oddValues } = require('../helpers/values')

const EMPTY = Buffer.alloc(0)
const MORE = 'GET /more HTTP/1.1\r\nHost: a\r\n\r\n'
const HUGE_BYTES = 300_000
const apply = Reflect.apply
const typedArray = Object.getPrototypeOf(Uint8Array.prototype)
const lengthOf = /** @type {any} */ (Object.getOwnPropertyDescriptor(typedArray, 'length')).get

/** @typedef {{ held: Buffer, calls: number }} State of a transform on a connection */
/** @typedef {(chunk: Buffer, socket: any, state: State) => unknown} Behaviour */

class Bytes extends Uint8Array {
  static get [Symbol.species] () { return fail() }
  get length () { return fail() }
  get byteLength () { return fail() }
  get buffer () { return fail() }
}

/** @param {Uint8Array} chunk @param {any} array of as many bytes */
function filled (chunk, array) {
  const length = apply(lengthOf, chunk, [])
  for (let i = 0; i < length; i++) array[i] = chunk[i]
  return array
}

/** Holds bytes back. @param {State} state @param {Buffer} chunk @param {(all: Buffer) => number} split */
function hold (state, chunk, split) {
  const all = Buffer.concat([state.held, chunk])
  const end = chunk.length === 0 ? all.length : split(all)
  state.held = all.subarray(end)
  return all.subarray(0, end)
}

/** What a transform may do. @type {Record<string, Behaviour>} */
const allowed = {
  nothing: () => undefined,
  same: (chunk) => chunk,
  copy: (chunk) => Buffer.from(chunk),
  'part of a larger buffer': (chunk) => filled(chunk, new Uint8Array(new ArrayBuffer(chunk.length + 20), 7,
    chunk.length)),
  'shared memory': (chunk) => filled(chunk, new Uint8Array(new SharedArrayBuffer(chunk.length))),
  'resizable memory': (chunk) => filled(chunk, new Uint8Array(
    new /** @type {any} */ (ArrayBuffer)(chunk.length, { maxByteLength: chunk.length + 9 }))),
  'class of its own': (chunk) => filled(chunk, new Bytes(chunk.byteLength)),
  'length that throws': (chunk) => Object.defineProperty(Buffer.from(chunk), 'length', { get: fail }),
  'length that is wrong': (chunk) => Object.defineProperty(Buffer.from(chunk), 'length', { value: 3 }),
  'chunk with a length that throws': (chunk) => { Object.defineProperty(chunk, 'length', { get: fail }) },
  'no prototype': (chunk) => Object.setPrototypeOf(Buffer.from(chunk), null),
  'holds all': (chunk, socket, state) => hold(state, chunk, () => 0),
  'holds the last byte': (chunk, socket, state) => hold(state, chunk, (all) => Math.max(0, all.length - 1)),
  'holds the last line': (chunk, socket, state) => hold(state, chunk, (all) => all.lastIndexOf(10) + 1),
  'drops the third chunk': (chunk, socket, state) => state.calls === 3 ? EMPTY : chunk,
  'replaces text': (chunk) => Buffer.from(chunk.toString('latin1').replaceAll('ab', 'abc'), 'latin1'),
  'writes into the chunk': (chunk) => {
    for (let i = 0; i < chunk.length; i++) if (chunk[i] === 0x61) chunk[i]++
  },
  'adds at the end': (chunk) => chunk.length === 0 ? Buffer.from(MORE) : chunk,
  'adds a huge header': (chunk, socket, state) => state.calls === 2 ? Buffer.alloc(HUGE_BYTES, 'x') : chunk
}

/** What ends the connection. @type {Record<string, Behaviour>} */
const forbidden = {
  throws: () => fail(),
  'throws nothing': () => { throw undefined }, // eslint-disable-line no-throw-literal
  'throws what throws': () => { throw oddValues['throwing error proxy']() },
  'throws a revoked proxy': () => { throw oddValues.revoked() },
  'is async': async (chunk) => chunk,
  'is async and rejects': async () => fail(),
  'returns a thenable': () => ({ then: fail }),
  'returns text': (chunk) => chunk.toString('latin1'),
  'returns null': () => null,
  'returns a number': () => 7,
  'returns other memory': (chunk) => new Uint16Array(chunk),
  'returns a proxy': (chunk) => new Proxy(chunk, {}),
  'returns a throwing proxy': () => oddValues['throwing proxy'](),
  'returns getters': () => oddValues['throwing getters']()
}

/** What else it does to its connection. @type {Record<string, Behaviour>} */
const endings = {
  'destroys the socket': (chunk, socket) => { socket.destroy() },
  'destroys the socket with an error': (chunk, socket) => { socket.destroy(new Error('of the transform')) }
}

const behaviours = { ...allowed, ...forbidden, ...endings }

/**
 * Returns the bytes that a transform has passed on, by docs/intercept.md.
 * @param {any} returned
 * @param {Buffer} chunk
 * @returns {Buffer | undefined} undefined: it may not return that
 */
function bytesByRule (returned, chunk) {
  const bytes = returned === undefined ? chunk : returned
  if (!types.isUint8Array(bytes)) return undefined
  return copyOf(bytes)
}

/** Copies bytes, whatever their class and properties are. @param {Uint8Array} bytes @returns {Buffer} */
function copyOf (bytes) {
  return filled(bytes, Buffer.alloc(apply(lengthOf, bytes, [])))
}

module.exports = { behaviours, allowed, bytesByRule, copyOf, endings, forbidden }
