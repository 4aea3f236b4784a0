'use strict'

// Provider types of each subsystem, for Node 20 to 26, and compilation of filters. A type may belong to
// several subsystems. Types that Node adds later work by their raw name.

const { mistake, nearest } = require('./errors')
const { attempt } = require('./files')

/** Pseudo provider type of a file without a resource, see handles/descriptors.js. */
const DESCRIPTOR = 'DESCRIPTOR'

/** @type {Record<string, string>} */
const table = {
  TCP: 'TCPWRAP TCPSERVERWRAP TCPCONNECTWRAP',
  PIPE: 'PIPEWRAP PIPESERVERWRAP PIPECONNECTWRAP',
  UDP: 'UDPWRAP UDPSENDWRAP JSUDPWRAP',
  TLS: 'TLSWRAP DTLS_ENDPOINT DTLS_SESSION',
  HTTP: 'HTTPINCOMINGMESSAGE HTTPCLIENTREQUEST QueuedRequest UNDICI_REQUEST',
  HTTP2: 'HTTP2SESSION HTTP2STREAM HTTP2PING HTTP2SETTINGS PendingRequest',
  QUIC: 'QUIC_ENDPOINT QUIC_LOGSTREAM QUIC_PACKET QUIC_SESSION QUIC_STREAM QUIC_UDP',
  DNS: 'DNSCHANNEL GETADDRINFOREQWRAP GETNAMEINFOREQWRAP QUERYWRAP',
  FS: 'FSREQCALLBACK FSREQPROMISE FSEVENTWRAP STATWATCHER FILEHANDLE FILEHANDLECLOSEREQ DIRHANDLE ' +
    `BLOBREADER ${DESCRIPTOR}`,
  TIMER: 'Timeout',
  IMMEDIATE: 'Immediate',
  TICK: 'TickObject Microtask',
  PROMISE: 'PROMISE',
  STREAM: 'JSSTREAM STREAMPIPE WRITEWRAP SHUTDOWNWRAP STREAM_END_OF_STREAM',
  CRYPTO: 'CHECKPRIMEREQUEST PBKDF2REQUEST KEYPAIRGENREQUEST KEYGENREQUEST KEYEXPORTREQUEST ARGON2REQUEST ' +
    'CIPHERREQUEST DERIVEBITSREQUEST HASHREQUEST RANDOMBYTESREQUEST RANDOMPRIMEREQUEST SCRYPTREQUEST ' +
    'SIGNREQUEST VERIFYREQUEST SECRETKEYGENREQUEST',
  ZLIB: 'ZLIB',
  PROCESS: 'PROCESSWRAP',
  WORKER: 'WORKER WORKERCPUPROFILE WORKERCPUUSAGE WORKERHEAPPROFILE WORKERHEAPSNAPSHOT WORKERHEAPSTATISTICS',
  MESSAGE: 'MESSAGEPORT',
  SIGNAL: 'SIGNALWRAP SIGINTWATCHDOG',
  TTY: 'TTYWRAP',
  WASI: 'WASI',
  LOCKS: 'LOCKS',
  PERF: 'ELDHISTOGRAM HEAPSNAPSHOT',
  INSPECTOR: 'INSPECTORJSBINDING'
}

/** Handle types of connections. */
const connectionTypes = new Set(['TCPWRAP', 'PIPEWRAP', 'TLSWRAP'])

/** @type {Map<string, ReadonlySet<string>>} subsystem → its provider types */
const subsystems = new Map(Object.entries(table).map(([name, types]) => [name, new Set(types.split(' '))]))

/** @type {Map<string, string>} provider type → the first subsystem that has it */
const subsystemsByType = new Map([...subsystems].reverse()
  .flatMap(([name, types]) => [...types].map((type) => [type, name])))

/**
 * Compiles a filter. Names apply from left to right; a filter that starts with an exclusion starts with all.
 * @param {readonly string[]} filter
 * @param {Iterable<string>} [extra] further known types, for example those of the running Node
 * @returns {(type: string) => boolean}
 * @throws {import('./errors').LongstackError} UNKNOWN_SUBSYSTEM, INVALID_FILTER
 */
function compile (filter, extra = []) {
  const steps = check(filter, extra)
  const start = steps[0]?.take === false
  return (type) => {
    let selected = start
    for (const { take, matches } of steps) if (matches(type)) selected = take
    return selected
  }
}

/**
 * @param {unknown} filter
 * @param {Iterable<string>} extra
 */
function check (filter, extra) {
  const entries = copyOf(filter)
  if (entries === undefined) throw mistake('INVALID_FILTER', filter)
  const knownTypes = new Set([...subsystemsByType.keys(), ...extra])
  return entries.map((entry) => {
    if (typeof entry !== 'string' || entry.trim() === '') throw mistake('INVALID_FILTER', entry)
    const take = !entry.startsWith('-')
    const name = (take ? entry : entry.slice(1)).trim()
    if (name === '' || name === 'type:') throw mistake('INVALID_FILTER', entry)
    return { take, matches: matcher(name, knownTypes) }
  })
}

/**
 * Reads a filter exactly once.
 * @param {unknown} filter
 * @returns {unknown[] | undefined} undefined if it is not an array, or reading it throws
 */
const copyOf = (filter) => attempt(() => Array.isArray(filter) ? Array.from(filter) : undefined)

/**
 * A word in capitals must be an existing subsystem or provider type. Any other word, and any word after
 * `type:`, may be the type of an AsyncResource that the program creates later, unless it matches a known one
 * in another case.
 * @param {string} name
 * @param {Set<string>} knownTypes
 * @returns {(type: string) => boolean}
 */
function matcher (name, knownTypes) {
  if (name === '*') return () => true
  if (name.startsWith('type:')) return (type) => type === name.slice('type:'.length)
  const types = subsystems.get(name)
  if (types !== undefined) return (type) => types.has(type)
  if (knownTypes.has(name)) return (type) => type === name
  const words = [...subsystems.keys(), ...knownTypes]
  const exact = words.find((word) => word.toUpperCase() === name.toUpperCase())
  if (exact !== undefined) throw mistake('UNKNOWN_SUBSYSTEM', name, exact)
  if (/^[A-Z][A-Z0-9]*$/.test(name)) throw mistake('UNKNOWN_SUBSYSTEM', name, nearest(name, words))
  return (type) => type === name
}

/** @param {string} type @returns {string | undefined} subsystem of a provider type */
const subsystemOf = (type) => subsystemsByType.get(type)

module.exports = { DESCRIPTOR, compile, connectionTypes, subsystems, subsystemOf }
