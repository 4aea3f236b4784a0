'use strict'

// Parses the outputs for spans as users write them: "all.jsonl;sample=0.1;keep=500, slow.jsonl;slower=100,
// http://collector:4318". Reports all mistakes before anything is opened.

const path = require('node:path')
const { fileURLToPath } = require('node:url')
const { mistake, nearest } = require('../errors')
const { cutCredentials } = require('../text')

/**
 * @typedef {object} Output
 * @property {string} to a file, `-` for stdout, or the http(s) address of an OTLP collector
 * @property {number} [slower] only spans of at least this many ms
 * @property {true} [errors] only failed spans
 * @property {number} [sample] fraction of all traces, 0 to 1
 * @property {number} [keep] regardless of `sample`: spans of at least this many ms, and failed ones
 * @property {Target} [target] target of `to` when it was set: the program may change its directory
 *
 * @typedef {{ fd?: number, url?: string, path?: string }} Target
 *
 * @typedef {string | Output | Array<string | Output>} GivenOutputs
 */

const EXPECTED = 'expected a file, "-" or an http address, for example "spans.jsonl" or ' +
  '"all.jsonl;sample=0.1;keep=500, slow.jsonl;slower=100"'

const KEEP = 'used together with sample ' +
  '("sample=0.1;keep=500"; slow and failed ones alone: "sample=0;keep=500")'

/**
 * @typedef {{ allowed: string, accepts: (value: any) => boolean, read: (text: string) => unknown }} Setting
 */

/** @type {Setting} */
const milliseconds = {
  allowed: 'a number of milliseconds, 0 or more',
  accepts: (value) => Number.isFinite(value) && value >= 0,
  read: number
}

/** @type {Record<string, Setting>} */
const settings = {
  slower: milliseconds,
  errors: {
    allowed: 'given without a value, or true or false',
    accepts: (value) => typeof value === 'boolean',
    read: (text) => text === '' || text === 'true' ? true : text === 'false' ? false : text
  },
  sample: {
    allowed: 'a ratio from 0 to 1',
    accepts: (value) => Number.isFinite(value) && value >= 0 && value <= 1,
    read: number
  },
  keep: milliseconds
}

/** @param {string} text */
function number (text) {
  return /^(\d+\.?\d*|\.\d+)$/.test(text) ? Number(text) : text
}

/** Names of the standard streams. @type {Record<string, number>} */
const streams = { '-': 1, '/dev/stdout': 1, '/dev/fd/1': 1, '/dev/stderr': 2, '/dev/fd/2': 2 }

/** A scheme has two letters or more: C:\spans.jsonl is a file. */
const scheme = /^([a-z][a-z0-9+.-]+):\/\//i

/**
 * @param {unknown} value
 * @returns {Output[]}
 * @throws {import('../errors').LongstackError}
 */
function parseOutputs (value) {
  const outputs = (Array.isArray(value) ? value : [value]).flatMap(outputsOf)
  if (outputs.length === 0) throw mistake('INVALID_OUTPUT', value, EXPECTED)
  const keys = new Set()
  for (const output of outputs) {
    const target = targetOf(output.to)
    const key = target.url ?? target.path ?? target.fd
    if (keys.has(key)) throw mistake('INVALID_OUTPUT', safe(output.to), 'it is listed twice')
    keys.add(key)
  }
  return outputs
}

/** @param {unknown} value @returns {Output[]} */
function outputsOf (value) {
  if (typeof value === 'string') {
    return value.split(',').map((text) => text.trim()).filter((text) => text !== '').map(outputOf)
  }
  if (typeof value !== 'object' || value === null) throw mistake('INVALID_OUTPUT', value, EXPECTED)
  const { to, ...assigned } = /** @type {Record<string, unknown>} */ (value)
  return [complete(to, Object.entries(assigned))]
}

/** @param {string} text one output with its settings */
function outputOf (text) {
  const [to, ...parts] = text.split(';').map((part) => part.trim())
  return complete(to, parts.filter((part) => part !== '').map((part) => {
    const [name, ...assigned] = part.split('=')
    const key = name.trim()
    const text = assigned.join('=').trim()
    return [key, Object.hasOwn(settings, key) ? settings[key].read(text) : text]
  }))
}

/**
 * @param {unknown} to
 * @param {Array<[string, unknown]>} entries settings of the output
 * @returns {Output}
 */
function complete (to, entries) {
  if (typeof to !== 'string' || to.trim() === '' || to.includes('\0')) {
    throw mistake('INVALID_OUTPUT', to, EXPECTED)
  }
  targetOf(to)
  /** @type {any} */
  const output = { to }
  for (const [name, value] of entries) {
    if (!Object.hasOwn(settings, name)) {
      throw mistake('UNKNOWN_SETTING', name, nearest(name, Object.keys(settings)))
    }
    if (value === undefined) continue
    if (!settings[name].accepts(value)) throw mistake('INVALID_SETTING', name, value, settings[name].allowed)
    if (value !== false) output[name] = value
  }
  if (output.keep !== undefined && output.sample === undefined) {
    throw mistake('INVALID_SETTING', 'keep', output.keep, KEEP)
  }
  return output
}

/**
 * Returns the target of a name. A path is made absolute, as the program may change its directory later.
 * @param {string} to
 * @returns {Target}
 */
function targetOf (to) {
  if (Object.hasOwn(streams, to)) return { fd: streams[to] }
  if (/^https?:/i.test(to)) {
    return { url: resolve(to, (text) => new URL(text).href, 'it is not a valid address') }
  }
  const protocol = scheme.exec(to)?.[1].toLowerCase()
  if (protocol === undefined) {
    const reason = 'the name is relative to a directory that was deleted'
    return { path: resolve(to, (name) => path.resolve(name), reason) }
  }
  if (protocol === 'file') {
    return { path: resolve(to, (text) => fileURLToPath(text), 'it is not the address of a local file') }
  }
  throw mistake('INVALID_OUTPUT', to, `${protocol}: is none of http:, https: and file:`)
}

/**
 * Returns whether another thread can write to an output: not if it is a descriptor of the program.
 * @param {Output} output
 */
function isApart ({ to }) {
  const { fd, path: name = '' } = targetOf(to)
  return fd === undefined && !/^[/](dev[/](fd|std|tty|pts)|proc[/])/.test(name)
}

/**
 * Returns the path of a file.
 * @param {string} to
 * @returns {string | undefined} undefined if it is not a file
 */
function fileOf (to) {
  return to.trim() === '' || to.includes('\0') ? undefined : targetOf(to).path
}

/** @param {string} to @param {(to: string) => string} work @param {string} reason for the error message */
function resolve (to, work, reason) {
  try {
    return work(to)
  } catch {
    throw mistake('INVALID_OUTPUT', safe(to), reason)
  }
}

/** Returns a name without secrets: addresses can hold a password or a token. @param {string} to */
function safe (to) {
  if (!/^https?:/i.test(to)) return to
  return cutCredentials(to.replace(/[?#].*$/s, ''))
}

module.exports = { fileOf, isApart, parseOutputs, targetOf, safe }
