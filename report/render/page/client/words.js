'use strict'

// Words for Node's types of resources and longstack's subsystems; the raw name is the title.

const { foreign } = require('./dom')

/** @type {Record<string, string>} */
const words = {
  HTTPINCOMINGMESSAGE: 'HTTP request',
  HTTPCLIENTREQUEST: 'HTTP response of a peer',
  UNDICI_REQUEST: 'HTTP response of a peer',
  HTTP2SESSION: 'HTTP/2 session',
  HTTP2STREAM: 'HTTP/2 stream',
  TCPWRAP: 'data on a TCP connection',
  TCPCONNECTWRAP: 'TCP connect',
  TCPSERVERWRAP: 'TCP connection accepted',
  PIPEWRAP: 'data on a pipe',
  PIPECONNECTWRAP: 'pipe connect',
  PIPESERVERWRAP: 'pipe connection accepted',
  TLSWRAP: 'data on a TLS connection',
  UDPWRAP: 'UDP message',
  UDPSENDWRAP: 'UDP message sent',
  WRITEWRAP: 'data written',
  SHUTDOWNWRAP: 'end of a connection',
  TTYWRAP: 'terminal',
  GETADDRINFOREQWRAP: 'name lookup',
  GETNAMEINFOREQWRAP: 'name lookup',
  QUERYWRAP: 'DNS query',
  FSREQCALLBACK: 'file system call',
  FSREQPROMISE: 'file system call',
  FSEVENTWRAP: 'file watcher',
  STATWATCHER: 'file watcher',
  FILEHANDLE: 'file',
  Timeout: 'timer',
  Immediate: 'setImmediate',
  TickObject: 'process.nextTick',
  Microtask: 'queueMicrotask',
  PROMISE: 'promise',
  ZLIB: 'compression',
  PBKDF2REQUEST: 'hash of a password',
  SCRYPTREQUEST: 'hash of a password',
  HASHREQUEST: 'hash',
  RANDOMBYTESREQUEST: 'random bytes',
  PROCESSWRAP: 'child process',
  SIGNALWRAP: 'signal',
  WORKER: 'worker thread',
  MESSAGEPORT: 'message of a thread',
  TCP: 'TCP',
  PIPE: 'pipes',
  DNS: 'name lookups',
  FS: 'files',
  TIMER: 'timers',
  IMMEDIATE: 'setImmediate',
  TICK: 'process.nextTick',
  CRYPTO: 'cryptography',
  PROCESS: 'child processes',
  MESSAGE: 'messages',
  unknown: 'not known'
}

/** @param {string} type */
function wordOf (type) {
  return Object.hasOwn(words, type) ? words[type] : type
}

/** Puts a type in words, with its raw name as a title. @param {string} type */
function typeInWords (type) {
  const word = wordOf(type === '' ? 'unknown' : type)
  return foreign(word, { title: word === type ? undefined : type || undefined })
}

module.exports = { typeInWords, wordOf }
