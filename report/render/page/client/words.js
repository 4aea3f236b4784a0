'use strict'

// Words for Node's types of resources, for sites and for what ended a wait.

const { foreign, h, link } = require('./dom')
const { counted, time } = require('../../format')
const { shortFrame } = require('../../../../lib/text')

/** @typedef {{ at?: string, callers?: string[], until?: string, label?: string }} Place */

/** Node's types of resources by what their callbacks bring. @type {Record<string, string>} */
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
  'data on a TLS connection': 'TLSWRAP',
  'UDP message': 'UDPWRAP UDPSENDWRAP',
  'data written': 'WRITEWRAP',
  'end of a connection': 'SHUTDOWNWRAP',
  'name lookup': 'GETADDRINFOREQWRAP GETNAMEINFOREQWRAP QUERYWRAP',
  'file system call': 'FSREQCALLBACK FSREQPROMISE',
  file: 'FILEHANDLE',
  timer: 'Timeout',
  setImmediate: 'Immediate',
  'process.nextTick': 'TickObject',
  queueMicrotask: 'Microtask',
  promise: 'PROMISE',
  compression: 'ZLIB',
  hash: 'PBKDF2REQUEST SCRYPTREQUEST HASHREQUEST',
  'random bytes': 'RANDOMBYTESREQUEST',
  'child process': 'PROCESSWRAP',
  'worker thread': 'WORKER',
  'message of a thread': 'MESSAGEPORT'
}
const words = new Map(Object.entries(typesByWord).flatMap(([word, types]) =>
  types.split(' ').map((type) => [type, word])))

/** Puts a type in words, with its raw name as a title. @param {string} type */
const typeInWords = (type) => foreign(words.get(type) ?? type, { title: type })

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
  const length = count === 1 ? time(ms) : `${time(ms)} in ${counted(count, 'wait')}`
  return [frame && shortFrame(frame), length, until && `until ${until}`].filter(Boolean).join(' · ')
}

module.exports = { callersOf, endOf, framesOf, shortCode, siteName, typeInWords, waitText }
