'use strict'

// Paths as parts of names. Where no framework names the route, what looks like one of many is replaced by
// `*`: so names stay few, and tokens, session ids and e-mail addresses stay out of them. Whatever is asked
// for, there are at most MAX_NAMES in a process; the paths of the rest are all called `*`. A report asks for
// the same names, of the paths that it reads.

const MAX_NAMES = 1000
const MAX_NAME = 200 // characters
const MAX_PLAIN = 16 // characters of a segment without a digit or sign that is not looked at closely

const plain = /^[a-z._-]*$/i
const uuid = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/i
/** what can separate the parts of a token, and of a segment */
const separators = /[.,:!$&'()*|\s]+/
const encoded = /%[0-9a-f]{2}/gi
/** a word or a small number between hyphens, as people write them: `chunks-of-64-KiB` */
const slugPart = /^(?:[A-Z]?[a-z]{0,14}|[A-Za-z]{1,4}|\d{1,2})$/
/** those of Node's http.METHODS, which is not to be loaded for a program without http */
const knownMethods = new Set(('ACL BIND CHECKOUT CONNECT COPY DELETE GET HEAD LINK LOCK M-SEARCH MERGE ' +
  'MKACTIVITY MKCALENDAR MKCOL MOVE NOTIFY OPTIONS PATCH POST PROPFIND PROPPATCH PURGE PUT QUERY REBIND ' +
  'REPORT SEARCH SOURCE SUBSCRIBE TRACE UNBIND UNLINK UNLOCK UNSUBSCRIBE').split(' '))

/** names that were given @type {Set<string>} */
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

/** Returns the same of any number of paths. @param {string} path */
function generalPath (path) {
  const [, target, port = ''] = /^([^/]*)(:\d{1,5})$/.exec(path) ?? ['', path] // host:port of CONNECT
  return `${target.split('/').map(nameOfSegment).join('/')}${port}`.slice(0, MAX_NAME)
}

/** Returns a method as part of a name: HTTP/2 lets a client make them up. @param {string} method */
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
 * Returns whether a word is made by chance rather than for people: a hash, an id, a secret.
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
  if (share > 0.15) return true // mixed by chance, or a code in capitals; words in camel case have less
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
