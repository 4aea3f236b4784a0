'use strict'

// The environment of a program: variables for the options that were given as flags, and NODE_OPTIONS.
//
// NODE_OPTIONS as Node reads it (ParseNodeOptionsEnvVar in src/node.cc): words are separated by spaces only;
// double quotes, anywhere in a word, keep spaces; a backslash escapes a character within quotes only.

const { NO_LIGHT_MODE, defaultOptions, parseOptions, rules } = require('../options')
const { UsageError } = require('./flags')
const { printError } = require('./terminal')

const REGISTER = /^longstack[\\/]register$|[\\/]longstack[\\/]lib[\\/]register\.js$/
const PRELOAD_FLAG = /^(?:-r|--require|--import)(?:=|$)/

/**
 * @typedef {object} Word
 * @property {string} value without quotes and escapes
 * @property {number} start in the text
 * @property {number} end
 */

/**
 * @param {string} text
 * @param {string} [source] of the text, for the message
 * @returns {Word[]}
 * @throws {UsageError} for an unterminated quote, which Node refuses, too
 */
function wordsOf (text, source = 'NODE_OPTIONS') {
  /** @type {Word[]} */
  const words = []
  /** @type {Word | undefined} */
  let word
  let isQuoted = false
  for (let i = 0; i < text.length; i++) {
    if (text[i] === ' ' && !isQuoted) {
      word = undefined
      continue
    }
    if (word === undefined) words.push(word = { value: '', start: i, end: i })
    if (text[i] === '"') {
      isQuoted = !isQuoted
    } else {
      if (text[i] === '\\' && isQuoted) i++
      word.value += text[i] ?? ''
    }
    word.end = i + 1
  }
  if (isQuoted) throw new UsageError(`Unterminated quote in ${source}.`)
  return words
}

/** @param {string} word */
function quoteWord (word) {
  return /[ "]/.test(word) ? `"${word.replace(/["\\]/g, '\\$&')}"` : word
}

/**
 * Appends a preload to what NODE_OPTIONS has, in place of each preload of longstack that it has.
 * @param {string} text what NODE_OPTIONS has
 * @param {string} file lib/register.js, absolute
 * @returns {string}
 */
function withRegister (text, file) {
  const words = wordsOf(text)
  let others = ''
  let start = 0
  for (let i = 0; i < words.length; i++) {
    const flag = PRELOAD_FLAG.exec(words[i].value)?.[0]
    if (flag === undefined) continue
    const isInline = flag.endsWith('=')
    const name = isInline ? words[i].value.slice(flag.length) : words[i + 1]?.value
    if (name === undefined || (name !== file && !REGISTER.test(name))) continue
    others += text.slice(start, words[i].start)
    start = words[isInline ? i : ++i].end
  }
  others += text.slice(start)
  const preload = quoteWord(`--require=${file}`)
  return `${others.replace(/ +$/, '')} ${preload}`.replace(/^ +/, '')
}

/**
 * Returns the variables for the options that were given as flags.
 * @param {Record<string, any>} values by flag
 * @returns {Record<string, string>}
 * @throws {UsageError}
 */
function variablesOf (values) {
  if (values.mode !== undefined && values.mode !== 'full') printError(`longstack: --mode: ${NO_LIGHT_MODE}`)
  const entries = Object.entries(rules).filter(([, { flag }]) => values[flag] !== undefined)
  return Object.fromEntries(entries.map(([name, { flag, fromText, initial, variable }]) => {
    const text = initial === true ? 'off' : String(values[flag])
    try {
      parseOptions({ [name]: fromText(text) }, defaultOptions())
    } catch (error) {
      throw new UsageError(`--${flag}: ${/** @type {Error} */ (error).message}`)
    }
    return [variable, text]
  }))
}

module.exports = { quoteWord, variablesOf, withRegister, wordsOf }
