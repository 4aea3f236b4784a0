'use strict'

// Reads names and paths letter by letter. No regular expression is used on the way of `.stack`: V8 of Node 20
// and 22 aborts the process when it compiles one with little stack left ("RegExpCompiler Allocation failed",
// V8's src/regexp/regexp-compiler-tonode.cc), and compiles again what a collection dropped or what is used
// much.

/** Says whether it is one of a-z A-Z 0-9 _. @param {number} code of a UTF-16 unit */
function isWordCode (code) {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || isDigitCode(code) || code === 95
}

/** Says whether it is one of a-z A-Z 0-9 _ $. @param {number} code */
function isNameCode (code) {
  return isWordCode(code) || code === 36
}

/** @param {number} code @returns {boolean} */
function isDigitCode (code) {
  return code >= 48 && code <= 57
}

/** Says whether ECMAScript takes it for white space or the end of a line. @param {number} code */
function isSpaceCode (code) {
  if (code < 128) return code === 32 || (code >= 9 && code <= 13)
  return (code >= 0x2000 && code <= 0x200a) || spaces.has(code)
}

const spaces = new Set([0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff])

/** @param {string} text @param {string} prefix @returns {string} the text without that prefix */
function withoutPrefix (text, prefix) {
  return text.startsWith(prefix) ? text.slice(prefix.length) : text
}

/** Returns what follows the last such letter, else all. @param {string} text @param {string} letter */
function afterLast (text, letter) {
  return text.slice(text.lastIndexOf(letter) + 1)
}

/** Returns the file's name of a path with either kind of slash. @param {string} file */
function baseName (file) {
  return file.slice(Math.max(file.lastIndexOf('/'), file.lastIndexOf('\\')) + 1)
}

/** Returns where " [as alias]" starts at the end of a function's name, or -1. @param {string} name */
function aliasStart (name) {
  if (!name.endsWith(']')) return -1
  return name.indexOf(' [as ', name.lastIndexOf(']', name.length - 2) + 1)
}

/** "Timeout.warmUp [as _onTimeout]" -> "Timeout.warmUp". @param {string} name */
function withoutAlias (name) {
  const start = aliasStart(name)
  return start === -1 ? name : name.slice(0, start)
}

/**
 * Finds the folder node_modules in a path.
 * @param {string} file
 * @param {boolean} [last] the innermost one
 * @returns {number} where what is in it starts, or -1
 */
function insideModules (file, last = false) {
  const name = 'node_modules'
  let at = last ? file.lastIndexOf(name) : file.indexOf(name)
  while (at !== -1) {
    const end = at + name.length
    if (at > 0 && isSlash(file[at - 1]) && isSlash(file[end])) return end + 1
    if (last && at === 0) return -1
    at = last ? file.lastIndexOf(name, at - 1) : file.indexOf(name, end)
  }
  return -1
}

/** @param {string | undefined} letter */
function isSlash (letter) {
  return letter === '/' || letter === '\\'
}

module.exports = {
  isWordCode,
  isNameCode,
  isDigitCode,
  isSpaceCode,
  isSlash,
  withoutPrefix,
  afterLast,
  baseName,
  aliasStart,
  withoutAlias,
  insideModules
}
