'use strict'

// Flags of a command: parsed by Node's util.parseArgs, and checked with a message for each mistake.

const { parseArgs } = require('node:util')
const { nearest } = require('../errors')

const MAX_QUOTED_CHARS = 80

/**
 * @typedef {import('./commands').Flag} Flag
 * @typedef {import('./commands').Flags} Flags
 *
 * @typedef {object} Parsed
 * @property {Record<string, any>} values by flag
 * @property {string[]} operands arguments that are not flags
 */

/** Wrong usage: a message for the user, exit code 2. */
class UsageError extends Error {}

/** @type {Flag} */
const helpFlag = { type: 'boolean', description: 'print this text' }

/**
 * @param {string[]} args
 * @param {Flags} flags
 * @param {boolean} [endAtOperand] return everything from the first operand on unchanged
 * @returns {Parsed}
 * @throws {UsageError}
 */
function parse (args, flags, endAtOperand = false) {
  const allFlags = { ...flags, help: helpFlag }
  /** @type {Parsed} */
  const parsed = { values: {}, operands: [] }
  for (const token of tokensOf(args, allFlags)) {
    if (token.kind === 'option') {
      addValue(token, allFlags, parsed.values)
    } else if (endAtOperand) {
      const start = token.kind === 'positional' ? token.index : token.index + 1
      return { ...parsed, operands: args.slice(start) }
    } else if (token.kind === 'positional') {
      parsed.operands.push(token.value)
    }
  }
  return parsed
}

/** @param {string[]} args @param {Flags} flags */
function tokensOf (args, flags) {
  const options = /** @type {any} */ (Object.fromEntries(Object.entries(flags).map(([name, { type }]) =>
    [name, { type: type === 'string' ? 'string' : 'boolean', multiple: true }])))
  options.help.short = 'h'
  // Not strict: unknown flags and missing values get our own messages, and parseArgs has no type
  // `optional`.
  const { tokens } = parseArgs({ args, options, strict: false, tokens: true, allowPositionals: true })
  return /** @type {any[]} */ (tokens)
}

/** @param {any} token @param {Flags} flags @param {Record<string, any>} values */
function addValue ({ name, rawName, value, inlineValue }, flags, values) {
  if (!Object.hasOwn(flags, name) || (rawName !== `--${name}` && rawName !== '-h')) {
    throw new UsageError(`Unknown flag ${quote(rawName)}.${suggestion(name, Object.keys(flags), '--')}`)
  }
  const { type, multiple } = flags[name]
  if (type === 'boolean' && inlineValue) throw new UsageError(`${rawName} takes no value.`)
  // Another flag in place of a value means that the value was forgotten.
  const [word] = inlineValue ? [] : /^--[^=]*/.exec(value) ?? []
  const isFlag = word !== undefined && Object.hasOwn(flags, word.slice(2))
  if (type === 'string' && (value === undefined || isFlag)) throw new UsageError(`${rawName} needs a value.`)
  if (type === 'string' && value === '') throw new UsageError(`The value of ${rawName} is empty.`)
  if (multiple) values[name] = [...(values[name] ?? []), value]
  else if (Object.hasOwn(values, name)) throw new UsageError(`${rawName} was given twice.`)
  else values[name] = value ?? true
}

/**
 * Suggests a similar word.
 * @param {string} word
 * @param {string[]} words known words
 * @param {string} [prefix] of flags; if undefined, the word is quoted
 * @returns {string} empty if none is similar
 */
function suggestion (word, words, prefix) {
  const hint = nearest(word, words)
  if (hint === undefined) return ''
  return ` Did you mean ${prefix === undefined ? quote(hint) : `${prefix}${hint}`}?`
}

/** @param {string} word from the command line */
function quote (word) {
  return JSON.stringify(word.slice(0, MAX_QUOTED_CHARS))
}

/**
 * @param {string} name of the flag
 * @param {string} expected
 * @param {string} text received text
 */
function wrongValue (name, expected, text) {
  return new UsageError(`--${name} must be ${expected}. Received ${quote(text)}.`)
}

/**
 * Parses an integer.
 * @param {string} name of the flag
 * @param {string} text
 * @param {number} min @throws {UsageError}
 */
function integer (name, text, min) {
  if (!/^\d{1,9}$/.test(text) || Number(text) < min) {
    throw wrongValue(name, `an integer of at least ${min}`, text)
  }
  return Number(text)
}

/**
 * Parses a number.
 * @param {string} name of the flag
 * @param {string} text
 * @param {number} min
 * @param {number} max
 * @param {string} [expected]
 * @throws {UsageError}
 */
function number (name, text, min, max, expected = `a number from ${min} to ${max}`) {
  if (/^\d*\.?\d+$/.test(text) && Number(text) >= min && Number(text) <= max) return Number(text)
  throw wrongValue(name, expected, text)
}

module.exports = { UsageError, helpFlag, integer, number, parse, quote, suggestion, wrongValue }
