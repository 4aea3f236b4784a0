'use strict'

// Paths as parts of names. If no framework names the route, variable segments are replaced by `*`: names stay
// few, and contain no tokens, session ids or e-mail addresses. A process has at most MAX_NAMES of them; all
// further paths are named `*`. Reports derive the same names from the paths that they read.

const MAX_NAMES = 1000
const MAX_NAME = 200 // characters
const MAX_PLAIN = 16 // characters; a shorter segment of letters and . _ - is kept without a closer look

const plain = /^[a-z._-]*$/i
const uuid = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/i
/** separators between the parts of a token or segment */
const separators = /[.,:!$&'()*|\s]+/
const encoded = /%[0-9a-f]{2}/gi
/** a word or small number between hyphens, as in names written by people: `chunks-of-64-KiB` */
const slugPart = /^(?:[A-Z]?[a-z]{0,14}|[A-Za-z]{1,4}|\d{1,2})$/
/** Node's http.METHODS; a program without http must not load that module */
const knownMethods = new Set(('ACL BIND CHECKOUT CONNECT COPY DELETE GET HEAD LINK LOCK M-SEARCH MERGE ' +
  'MKACTIVITY MKCALENDAR MKCOL MOVE NOTIFY OPTIONS PATCH POST PROPFIND PROPPATCH PURGE PUT QUERY REBIND ' +
  'REPORT SEARCH SOURCE SUBSCRIBE TRACE UNBIND UNLINK UNLOCK UNSUBSCRIBE').split(' '))

/** names in use @type {Set<string>} */
const names = new Set()

/**
 * Returns a path as part of a name.
 * @param {string} path
 */
function nameOfPath (path) {
  if (names.has(path)) return path
  const name = generalPath(path)
  if (names.has(name)) return name
  if (names.size >= MAX_NAMES) return '*'
  names.add(name)
  return name
}

/** Returns a path's name, without the limit on their number. @param {string} path */
function generalPath (path) {
  const [, target, port = ''] = /^([^/]*)(:\d{1,5})$/.exec(path) ?? ['', path] // host:port of CONNECT
  return `${target.split('/').map(nameOfSegment).join('/')}${port}`.slice(0, MAX_NAME)
}

/** Returns a method as part of a name: HTTP/2 clients may invent methods. @param {string} method */
const nameOfMethod = (method) => knownMethods.has(method) ? method : 'HTTP'

/** @param {string} segment of a path @returns {string} */
function nameOfSegment (segment) {
  if (segment.length < MAX_PLAIN && plain.test(segment)) return segment
  const semicolon = segment.indexOf(';') // ;jsessionid=…
  if (semicolon !== -1) return `${nameOfSegment(segment.slice(0, semicolon))};*`.replace('*;*', '*')
  const text = segment.replace(encoded, decode)
  if (text.includes('@') || text.length >= 64 || uuid.test(text)) return '*'
  if (text.split(separators).some(isToken)) return '*'
  const equals = text.indexOf('=')
  if (equals !== -1) return text.endsWith('=') ? '*' : `${nameOfSegment(text.slice(0, equals))}=*`
  return /^[\d.,:_+-]*\d[\d.,:_+-]*$/.test(text) ? '*' : segment.replace(/\d{3,}/g, '*')
}

/** @param {string} escape such as %2B @returns {string} */
function decode (escape) {
  const char = String.fromCharCode(Number.parseInt(escape.slice(1), 16))
  return char >= ' ' && char <= '~' ? char : ' '
}

/**
 * Returns whether a word looks random rather than written by people: a hash, an id, a secret.
 * @param {string} word
 */
function isToken (word) {
  const { length } = word
  if (length < 8 || isSlug(word)) return false
  const digits = count(word, /\d/g)
  const letters = count(word, /[a-z]/gi)
  if (digits > 0 && letters > 0 && /^[0-9a-f]+$/i.test(word)) return true
  if (digits > 0 && length >= 24) return true
  const upper = count(word, /[A-Z]/g)
  const isMixed = upper > 0 && upper < letters
  if (digits > 0 && length >= 16 && (isMixed || count(word, /\d(?!\d|$)/g) >= 2)) return true
  if (digits >= 3 && length >= 10 && count(word, /\d(?!\d|$)/g) >= 3) return true
  if (letters < 20) return false
  const share = upper / letters
  if (share > 0.15) return true // random case, or a code in capitals; camel case has less
  return /[a-z]{24}/.test(word)
}

/** @param {string} word */
function isSlug (word) {
  const parts = word.split(/[-_]/)
  return parts.length > 1 && parts.every((part) => slugPart.test(part))
}

/** @param {string} text @param {RegExp} pattern */
const count = (text, pattern) => text.match(pattern)?.length ?? 0

module.exports = { MAX_NAMES, generalPath, nameOfMethod, nameOfPath }
