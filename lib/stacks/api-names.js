'use strict'

// Names the program's call into Node the way a person would: fs.readFile, socket.write, new Worker.

const { getOrAdd } = require('../group-by')
const { isCore, isProgram } = require('./frames')
const { isNameCode, withoutAlias, withoutPrefix } = require('./text-scan')

/** @typedef {import('./frames').Frame} Frame */

/**
 * Turns a record of lists into a map from each member to the name of its list.
 * @param {Record<string, string>} lists space-separated words
 * @returns {Map<string, string>}
 */
function invert (lists) {
  const map = new Map()
  for (const [name, words] of Object.entries(lists)) for (const word of words.split(' ')) map.set(word, name)
  return map
}

/** Common nouns for objects of Node's classes. */
const nouns = invert({
  server: 'Server Http2Server Http2SecureServer TLSServer',
  socket: 'Socket TLSSocket',
  stream: 'Readable Writable Duplex Transform PassThrough Stream ReadStream WriteStream IncomingMessage ' +
    'Gzip Gunzip Http2Stream ClientHttp2Stream ServerHttp2Stream',
  request: 'ClientRequest OutgoingMessage',
  response: 'ServerResponse Http2ServerResponse',
  session: 'Http2Session ClientHttp2Session ServerHttp2Session',
  dir: 'Dir',
  handle: 'FileHandle FsFileHandle',
  resolver: 'Resolver',
  child: 'ChildProcess',
  worker: 'Worker',
  timer: 'Timeout',
  port: 'MessagePort BroadcastChannel',
  events: 'EventEmitter',
  controller: 'AbortController'
})

/** @param {string} owner a class */
function nounOf (owner) {
  return nouns.get(owner) ?? (owner.startsWith('Zlib') ? 'stream' : owner)
}

/** Public modules by Node source file, for files that are no module or have another name. */
const publicModules = invert({
  http: '_http_client _http_server _http_agent _http_outgoing _http_incoming _http_common',
  tls: '_tls_wrap _tls_common',
  'fs.promises': 'internal/fs/promises fs/promises',
  'dns.promises': 'internal/dns/promises dns/promises',
  'timers.promises': 'timers/promises',
  '': 'async_hooks'
})

const modulesWithInternals = new Set([
  'fs', 'dns', 'child_process', 'crypto', 'http', 'http2', 'net', 'tls', 'dgram', 'timers', 'zlib'
])

/**
 * Returns the public module for one of Node's source files.
 * @param {string} file without "node:"
 * @returns {string} '' if there is none
 */
function moduleOf (file) {
  const module = publicModules.get(file)
  if (module !== undefined) return module
  if (!file.startsWith('internal/')) return file
  if (file.startsWith('internal/streams/')) return 'stream'
  let end = 'internal/'.length
  while (end < file.length && isNameCode(file.charCodeAt(end))) end++
  const directory = file.slice('internal/'.length, end)
  return modulesWithInternals.has(directory) ? directory : ''
}

/** Owners that are the module itself. Vitest wraps Node's modules in proxies. */
const unnamedOwners = new Set([
  'Object', 'Function', 'Module', 'process', 'FSPromise', 'FSPromises', 'exports', 'Proxy'
])

/** keyed by the frames of a Stack @type {WeakMap<Frame[], string | undefined>} */
const apiNames = new WeakMap()

/**
 * Returns the name of the program's call into Node: the core frame next to the program's innermost frame.
 * @param {Frame[]} frames
 * @returns {string | undefined}
 */
function apiName (frames) {
  return getOrAdd(apiNames, frames, findApiName)
}

/** @param {Frame[]} frames @returns {string | undefined} */
function findApiName (frames) {
  let index = frames.findIndex(isProgram) - 1
  while (index >= 0 && !(isCore(frames[index]) && frames[index].fileName !== undefined)) index--
  const api = index < 0 ? undefined : frames[index]
  if (api?.functionName === undefined) return undefined
  const name = calledName(api.functionName)
  if (!isDottedName(name)) return undefined
  if (name.startsWith('new ')) return name
  const parts = name.split('.').filter((part) => !unnamedOwners.has(part))
  const method = parts[parts.length - 1]
  const owner = parts[parts.length - 2]
  if (owner !== undefined) return `${nounOf(owner)}.${method}`
  const module = moduleOf(String(api.fileName).slice('node:'.length))
  return module === '' ? method : `${module}.${method}`
}

/** Whether a text is a name or a dotted name, optionally after "new ". @param {string} text */
const isDottedName = (text) => withoutPrefix(text, 'new ').split('.').every(isName)

/**
 * Returns the name that the caller used: "Object.query [as resolve4]" → "Object.resolve4".
 * @param {string} name
 */
function calledName (name) {
  const own = withoutAlias(name)
  const alias = name.slice(own.length + ' [as '.length, -1)
  let end = own.length
  while (end > 0 && isNameCode(own.charCodeAt(end - 1))) end--
  return end === own.length || !isName(alias) ? own : own.slice(0, end) + alias
}

/** @param {string} text */
function isName (text) {
  for (let i = 0; i < text.length; i++) if (!isNameCode(text.charCodeAt(i))) return false
  return text !== ''
}

module.exports = { apiName }
