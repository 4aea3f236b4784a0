'use strict'

// Text for people and terminals: durations, short frames, foreign text without control characters.

/** Formats a duration: `12 ms`, `1.5 s`, `3 min`. @param {number} ms */
function formatDuration (ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`
  return `${(ms / 3_600_000).toFixed(1)} h`
}

/** Name of an unnamed function, and V8's prefix of an awaiting one */
const UNNAMED = /^(?:async )?(?:(?:[\w$.]+\.)?<anonymous> \((.*)\)( via .*)?$)?/s

/**
 * Shortens a frame to function, file name and line: `load (/app/lib/pool.js:34:9) via pg` to
 * `load (pool.js:34) via pg`, and to `pool.js:34` if the function has no name.
 * @param {string} text
 */
function shortFrame (text) {
  const frame = text.replace(UNNAMED, (_, location = '', via = '') => location + via)
  const shortened = frame.replace(/\((?:.*[/\\])?([^/\\]*?:\d+):\d+\)/, '($1)')
  if (shortened !== frame) return shortened
  return frame.replace(/^(?:.*[/\\])?([^/\\()]*?:\d+):\d+(?= via |$)/, '$1')
}

/** Replaces control and bidi characters of foreign text by `?`. @param {string} foreign */
const clean = (foreign) => replaceHarmful(foreign, () => '?')

/**
 * Escapes control and bidi characters in a line of JSON; its strings keep their values.
 * @param {string} json without line breaks
 */
const escapeJson = (json) => replaceHarmful(json, (code) => `\\u${code.toString(16).padStart(4, '0')}`)

// Parts of URLs, also percent-encoded, once or repeatedly
const SLASH = /[/\\]|%(?:25)*(?:2f|5c)/i
const SLASHES = /((?:[/\\]|%(?:25)*(?:2f|5c))+)/i
const TO_LAST_AT = /^.*(?:@|%(?:25)*40)/is
const COLON_BEFORE_AT = /(?::|%(?:25)*3a).*(?:@|%(?:25)*40)/is
const COLON_AT_END = /(?::|%(?:25)*3a)$/i
const URLS = /\b(?!file:)[a-z][\w+.-]+:[/\\]+[^\s"'`<>]+/gi

/**
 * Removes user and password from a URL or request target, in any position: `CONNECT u:p@db`, `//u:p@host/`,
 * `/fetch/https://u:p@host/`, the same with a single slash as proxies leave it, or percent-encoded.
 * Leaves paths such as `/@scope/package` and `/users/a@b.c` unchanged.
 * @param {string} target
 */
function cutCredentials (target) {
  if (target.indexOf('@') === -1 && target.indexOf('%') === -1) return target
  const parts = target.split(SLASHES) // slashes at odd indexes
  for (let i = 0; i < parts.length; i += 2) {
    const isAuthority = i === 0 || parts[i - 1].split(SLASH).length > 2 || COLON_AT_END.test(parts[i - 2])
    if (isAuthority || COLON_BEFORE_AT.test(parts[i])) parts[i] = parts[i].replace(TO_LAST_AT, '')
  }
  return parts.join('')
}

/** Removes user and password from the URLs in a text. @param {string} text such as an error message */
const cutUrlCredentials = (text) => text.includes('@') ? text.replace(URLS, cutCredentials) : text

/** @param {string} text @param {(code: number) => string} replacementOf of a UTF-16 unit */
function replaceHarmful (text, replacementOf) {
  let replaced = ''
  let start = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if ((code >= 0x20 && code < 0x7f) || !isHarmful(code)) continue
    replaced += text.slice(start, i) + replacementOf(code)
    start = i + 1
  }
  return start === 0 ? text : replaced + text.slice(start)
}

/** Uses no regular expression: see stacks/text-scan.js. @param {number} code of a UTF-16 unit */
function isHarmful (code) {
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return true
  if (code < 0x61c) return false
  if (code === 0x61c || code === 0x200e || code === 0x200f) return true
  return (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069)
}

/**
 * Formats a place: `query (/app/pool.js:34:12) via pg`.
 * @param {Record<string, any>} place a frame, see spans/path-sites.js
 */
function placeText ({ function: name, file, line, column, location, via }) {
  const text = `${name} (${file === undefined ? location : `${file}:${line}:${column}`})`
  return via === undefined ? text : `${text} via ${via}`
}

/**
 * Describes what ended a wait.
 * @param {{ until?: string, peer?: string, request?: string }} end of a wait, see encoding/span-figures.js
 * @returns {string | undefined} undefined if unknown
 */
function endText ({ until: subsystem, peer, request }) {
  if (request !== undefined) return `${request} of another request`
  return subsystem === undefined || peer === undefined ? subsystem : `${subsystem} ${peer}`
}

/**
 * Names a query on a connection: `127.0.0.1:5432 at loadUser (users.js:12)`.
 * @param {{ at?: string, operation?: string, peer?: string }} question see encoding/span-form.js
 */
function askedName ({ at: place, operation, peer = 'connection' }) {
  const site = place === undefined ? '' : ` at ${shortFrame(place).replace(/ via \S+$/, '')}`
  return operation === undefined ? peer + site : `${operation} on ${peer}${site}`
}

module.exports = {
  askedName,
  clean,
  cutCredentials,
  cutUrlCredentials,
  endText,
  escapeJson,
  formatDuration,
  placeText,
  shortFrame
}
