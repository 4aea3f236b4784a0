'use strict'

// Words for Node's types of resources and longstack's subsystems, for sites and for what ended a wait.

const { foreign, h, link } = require('./dom')
const { plural, time } = require('./format')
const { shortFrame } = require('../../../../lib/text')

/** @typedef {{ at?: string, callers?: string[], until?: string, label?: string }} Place */

/** Types and subsystems by what they are called. @type {Record<string, string>} */
const typesByWord = {
  'HTTP request': 'HTTPINCOMINGMESSAGE',
  'HTTP response of a peer': 'HTTPCLIENTREQUEST UNDICI_REQUEST',
  'HTTP/2 session': 'HTTP2SESSION',
  'HTTP/2 stream': 'HTTP2STREAM',
  'data on a TCP connection': 'TCPWRAP',
  'TCP connect': 'TCPCONNECTWRAP',
  'TCP connection accepted': 'TCPSERVERWRAP',
  'data on a pipe': 'PIPEWRAP',
  'pipe connect': 'PIPECONNECTWRAP',
  'pipe connection accepted': 'PIPESERVERWRAP',
  'data on a TLS connection': 'TLSWRAP',
  'UDP message': 'UDPWRAP',
  'UDP message sent': 'UDPSENDWRAP',
  'data written': 'WRITEWRAP',
  'end of a connection': 'SHUTDOWNWRAP',
  terminal: 'TTYWRAP',
  'name lookup': 'GETADDRINFOREQWRAP GETNAMEINFOREQWRAP',
  'DNS query': 'QUERYWRAP',
  'file system call': 'FSREQCALLBACK FSREQPROMISE',
  'file watcher': 'FSEVENTWRAP STATWATCHER',
  file: 'FILEHANDLE',
  timer: 'Timeout',
  setImmediate: 'Immediate IMMEDIATE',
  'process.nextTick': 'TickObject TICK',
  queueMicrotask: 'Microtask',
  promise: 'PROMISE',
  compression: 'ZLIB',
  'hash of a password': 'PBKDF2REQUEST SCRYPTREQUEST',
  hash: 'HASHREQUEST',
  'random bytes': 'RANDOMBYTESREQUEST',
  'child process': 'PROCESSWRAP',
  signal: 'SIGNALWRAP',
  'worker thread': 'WORKER',
  'message of a thread': 'MESSAGEPORT',
  pipes: 'PIPE',
  'name lookups': 'DNS',
  files: 'FS',
  timers: 'TIMER',
  cryptography: 'CRYPTO',
  'child processes': 'PROCESS',
  messages: 'MESSAGE',
  'not known': 'unknown'
}
const words = new Map(Object.entries(typesByWord).flatMap(([word, types]) =>
  types.split(' ').map((type) => [type, word])))

/** @param {string} type */
const wordOf = (type) => words.get(type) ?? type

/** Puts a type in words, with its raw name as a title. @param {string} type */
function typeInWords (type) {
  const word = wordOf(type === '' ? 'unknown' : type)
  return foreign(word, { title: word === type ? undefined : type || undefined })
}

/** Returns what ended a wait, or was waited for. @param {Place} place */
const endOf = ({ until, label }) => until ?? label

/** Returns frames from the outermost caller to the site. @param {{ at?: string, callers: string[] }} site */
const framesOf = ({ at: frame, callers }) => [...callers].reverse().concat(frame ?? [])

/** @param {string} frame */
const shortCode = (frame) => foreign(shortFrame(frame), { class: 'code', title: frame })

/** @param {string[]} [callers] innermost first */
const callersOf = (callers = []) => callers.map((caller) =>
  h('span', { class: 'callers', title: caller }, ' ← ', foreign(shortFrame(caller), { class: 'code' })))

/**
 * Names a site with its callers and what ended the waits.
 * @param {Place} place
 * @param {(() => void) | undefined} open shows it in the flame graph
 */
function siteName (place, open) {
  const { at: frame, callers } = place
  const until = endOf(place)
  const name = foreign(frame === undefined ? 'not known' : shortFrame(frame), { class: 'code', title: frame })
  return [
    frame === undefined || open === undefined
      ? name
      : link(foreign(shortFrame(frame)), open, { class: 'code', title: `${frame}: show in the flame graph` }),
    callersOf(callers),
    until !== undefined && h('small', { class: 'until' }, 'until ', foreign(until))
  ]
}

/**
 * Formats a wait: where it began, how long it was, what ended it.
 * @param {Place & { ms: number, count: number }} wait
 */
function waitText (wait) {
  const { ms, count, at: frame } = wait
  const until = endOf(wait)
  const length = count === 1 ? time(ms) : `${time(ms)} in ${plural(count, 'wait')}`
  return [frame && shortFrame(frame), length, until && `until ${until}`].filter(Boolean).join(' · ')
}

module.exports = { callersOf, endOf, framesOf, shortCode, siteName, typeInWords, waitText, wordOf }
