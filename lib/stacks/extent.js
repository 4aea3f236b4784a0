'use strict'

// Is a position in the source directly inside a given function, not in one nested in it? Attribution asks this of
// anonymous functions, which have no name to compare. V8 tells where a function starts; where it ends, only the
// source does. This reads just enough JavaScript to match brackets and to see functions begin. Where it is not
// sure it says so.

const fs = require('node:fs')
const { fileURLToPath } = require('node:url')
const { isNameCode, isSpaceCode } = require('./scan')

const { toString } = Function.prototype
const LARGEST = 2 << 20 // bytes of a source file worth reading
const KEPT = 8 // files remembered
const ANSWERS = 200 // remembered: a service that fails reads the same functions again and again

/** @type {Map<string, string | undefined>} */
const sources = new Map()
/**
 * By the function, as its text or its start in a file, and by the position
 * @type {Map<string, Map<string, { inside: boolean | undefined }>>}
 */
const answers = new Map()
let answered = 0

/**
 * @param {NodeJS.CallSite} site a call site whose function is meant
 * @param {number} line of the position, from 1
 * @param {number} column from 1
 * @returns {boolean | undefined} undefined where it cannot be told
 */
function contains (site, line, column) {
  const start = startOf(site)
  if (start === undefined) return undefined
  if (line < start.line || (line === start.line && column < start.column)) return false
  const fn = site.getFunction()
  // V8 hides strict functions (CallSiteInfo::IsStrict, src/objects/call-site-info.h): the file has to do.
  const file = typeof fn === 'function' ? undefined : site.getFileName()
  const code = typeof fn === 'function' ? textOf(fn) : `${file}:${start.line}:${start.column}`
  const place = `${line}:${column}`
  const known = answers.get(code)?.get(place)
  if (known !== undefined) return known.inside
  const text = file === undefined ? code : textFrom(file, start)
  if (text === undefined) return undefined
  const offset = offsetOf(text, line - start.line, line === start.line ? column - start.column : column - 1)
  const inside = offset === undefined ? false : directlyInside(text, offset)
  remember(code, place, inside)
  return inside
}

/** @param {string} code @param {string} place @param {boolean | undefined} inside */
function remember (code, place, inside) {
  if (++answered > ANSWERS) {
    answers.clear()
    answered = 1
  }
  let places = answers.get(code)
  if (places === undefined) answers.set(code, places = new Map())
  places.set(place, { inside })
}

/** @param {any} site @returns {{ line: number, column: number } | undefined} */
function startOf (site) {
  const line = site.getEnclosingLineNumber?.()
  const column = site.getEnclosingColumnNumber?.()
  return line > 0 && column > 0 ? { line, column } : undefined
}

/** Returns the source of a function from where V8 says that it starts. @param {Function} fn */
function textOf (fn) {
  const text = toString.call(fn)
  // A method's text starts at its name, its position at the bracket.
  return isMethod(text) ? text.slice(text.indexOf('(')) : text
}

/**
 * Returns the source from the function's start on.
 * @param {string | null | undefined} file
 * @param {{ line: number, column: number }} start
 */
function textFrom (file, start) {
  const source = read(file)
  const offset = source === undefined ? undefined : offsetOf(source, start.line - 1, start.column - 1)
  return offset === undefined ? undefined : /** @type {string} */ (source).slice(offset)
}

/** Says whether it is the text of a method, not of a function or an arrow function. @param {string} text */
function isMethod (text) {
  const word = wordAt(text, 0)
  const start = word === 'async' ? skipSpace(text, word.length) : 0
  if (text[start] === '(') return false
  const name = wordAt(text, start)
  if (name === 'function') return false
  if (name !== '' && text.startsWith('=>', skipSpace(text, start + name.length))) return false
  return !(word === 'async' && text.startsWith('=>', start))
}

/** Returns the name or number that starts there, or ''. @param {string} text @param {number} start */
function wordAt (text, start) {
  let end = start
  while (end < text.length && isNameCode(text.charCodeAt(end))) end++
  return text.slice(start, end)
}

/** Returns where white space ends. @param {string} text @param {number} start */
function skipSpace (text, start) {
  while (start < text.length && isSpaceCode(text.charCodeAt(start))) start++
  return start
}

/** @param {string | null | undefined} file */
function read (file) {
  if (typeof file !== 'string' || file.startsWith('node:')) return undefined
  if (sources.has(file)) return sources.get(file)
  if (sources.size >= KEPT) {
    sources.clear()
    answers.clear() // parts of those texts
  }
  let text
  try {
    const path = file.startsWith('file:') ? fileURLToPath(file) : file
    if (fs.statSync(path).size <= LARGEST) text = fs.readFileSync(path, 'utf8')
  } catch {}
  sources.set(file, text)
  return text
}

/**
 * @param {string} text
 * @param {number} lines to skip
 * @param {number} columns to skip in the line after
 * @returns {number | undefined}
 */
function offsetOf (text, lines, columns) {
  let start = 0
  for (let i = 0; i < lines; i++) {
    start = text.indexOf('\n', start) + 1
    if (start === 0) return undefined
  }
  return start + columns
}

const blockWords = new Set(['if', 'for', 'while', 'switch', 'with', 'catch', 'await'])
const valueWords = new Set([
  'return', 'typeof', 'case', 'do', 'else', 'in', 'of', 'instanceof', 'new', 'void', 'delete', 'throw',
  'yield', 'await'
])
const operators = new Set(['in', 'of', 'instanceof'])

/** Says whether a token ends an operand: after one a slash divides. @param {string} token */
function endsOperand (token) {
  if (token === '') return false
  return isNameCode(token.charCodeAt(token.length - 1)) || ')]}\'"`'.includes(token[token.length - 1])
}

/**
 * Says whether a token before brackets and a brace makes them the head of a function.
 * @param {string} token
 */
function isCallee (token) {
  const last = token.charCodeAt(token.length - 1)
  return (isNameCode(last) || last === 39 || last === 93) && !blockWords.has(token)
}

/**
 * Says whether a line begins a new statement where an expression could end.
 * @param {string} text
 * @param {number} at
 */
function beginsStatement (text, at) {
  const start = skipSpace(text, at)
  return start < text.length && isNameCode(text.charCodeAt(start)) && !operators.has(wordAt(text, start))
}

/**
 * Reads a function from its start and says whether an offset is in it and in no function nested in it.
 * @param {string} text
 * @param {number} offset
 * @returns {boolean | undefined}
 */
function directlyInside (text, offset) {
  /** open brackets; `fn` where a function body or an arrow's expression begins @type {Array<{ close: string, fn: boolean, callee?: string }>} */
  const open = []
  let depth = 0 // functions entered
  let at = 0
  let word = '' // the last significant token
  let callee = '' // the token before the bracket that closed last
  let entered = false
  let answer

  const push = (/** @type {string} */ close, fn = false) => {
    open.push({ close, fn, callee: word })
    if (fn) {
      depth++
      entered = true
    }
  }
  const pop = () => {
    const closed = open.pop()
    if (closed?.fn) depth--
    return closed
  }
  /** Arrow bodies without braces end before what cannot continue them. */
  const endArrows = () => {
    while (open.length > 0 && open[open.length - 1].close === '=>') pop()
  }

  while (at < text.length) {
    if (at >= offset && answer === undefined) answer = depth === 1
    if (entered && depth === 0) return answer === true
    const letter = text[at]
    const two = text.slice(at, at + 2)
    if (letter === '\n') {
      const arrow = open[open.length - 1]?.close === '=>'
      if (arrow && endsOperand(word) && !valueWords.has(word) && beginsStatement(text, at)) endArrows()
      at++
    } else if (isSpaceCode(text.charCodeAt(at))) {
      at++
    } else if (two === '//') {
      const end = text.indexOf('\n', at)
      at = end === -1 ? text.length : end
    } else if (two === '/*') {
      const end = text.indexOf('*/', at + 2)
      at = end === -1 ? text.length : end + 2
    } else if (letter === '"' || letter === "'") {
      at = skipQuoted(text, at, letter)
      word = "'"
    } else if (letter === '`') {
      const template = open[open.length - 1]?.close === '`'
      if (template) {
        pop()
        at++
        word = '`'
      } else {
        open.push({ close: '`', fn: false })
        at = skipTemplate(text, at + 1)
      }
    } else if (letter === '/' && (valueWords.has(word) || !endsOperand(word))) {
      const end = skipRegex(text, at)
      if (end === undefined) return undefined
      at = end
      word = "'"
    } else if (two === '=>') {
      const body = skipSpace(text, at + 2)
      if (text[body] === '{') {
        at = body + 1
        push('}', true)
        word = '{'
      } else {
        at += 2
        push('=>', true)
        word = '=>'
      }
    } else if (letter === '(' || letter === '[') {
      push(letter === '(' ? ')' : ']')
      word = letter
      at++
    } else if (letter === '{') {
      const body = word === ')' && isCallee(callee)
      push('}', body || (word === ')' && !entered && depth === 0))
      word = '{'
      at++
    } else if (letter === ')' || letter === ']' || letter === '}') {
      endArrows()
      const closed = pop()
      if (closed === undefined) return entered ? answer === true : undefined
      if (closed.close === '${') {
        at = skipTemplate(text, at + 1)
        continue
      }
      if (closed.close !== letter) return undefined
      callee = closed.callee ?? ''
      word = letter
      at++
    } else if (letter === ',' || letter === ';') {
      endArrows()
      word = letter
      at++
    } else if (isNameCode(text.charCodeAt(at))) {
      word = wordAt(text, at)
      at += word.length
      if (at > offset && answer === undefined) answer = depth === 1
    } else {
      word = letter
      at++
    }
  }
  return entered ? answer === true : undefined

  /** Goes to the end of a template's text, or into its `${`. @param {string} source @param {number} from */
  function skipTemplate (source, from) {
    for (let i = from; i < source.length; i++) {
      if (source[i] === '\\') i++
      else if (source[i] === '`') return i
      else if (source[i] === '$' && source[i + 1] === '{') {
        open.push({ close: '${', fn: false })
        word = '{'
        return i + 2
      }
    }
    return source.length
  }
}

/** @param {string} text @param {number} from @param {string} quote */
function skipQuoted (text, from, quote) {
  for (let i = from + 1; i < text.length; i++) {
    if (text[i] === '\\') i++
    else if (text[i] === quote || text[i] === '\n') return i + 1
  }
  return text.length
}

/** @param {string} text @param {number} from */
function skipRegex (text, from) {
  let inClass = false
  for (let i = from + 1; i < text.length; i++) {
    const letter = text[i]
    if (letter === '\n') return undefined
    if (letter === '\\') i++
    else if (letter === '[') inClass = true
    else if (letter === ']') inClass = false
    else if (letter === '/' && !inClass) return i + 1
  }
  return undefined
}

module.exports = { contains, directlyInside }
