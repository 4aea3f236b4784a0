'use strict'

// The flags of a command: what is given, read by Node's own parser; what is wrong, in a sentence; what there is, as help.

const { parseArgs } = require('node:util')
const { nearest } = require('../errors')

/**
 * @typedef {object} Flag
 * @property {'string' | 'boolean' | 'optional'} type `optional`: a value may follow after an equals sign
 * @property {boolean} [multiple]
 * @property {string} [value] what its value is called in the help
 * @property {string} says what it does, for the help
 *
 * @typedef {Record<string, Flag>} Flags
 *
 * @typedef {object} Given
 * @property {Record<string, any>} flags
 * @property {string[]} rest
 */

/** Wrong usage: a sentence for the user, and exit code 2. */
class Wrong extends Error {}

/**
 * @param {string[]} args
 * @param {Flags} known
 * @param {boolean} [first] everything from the first word on that is no flag belongs to somebody else
 * @returns {Given}
 */
function parse (args, known, first = false) {
  const all = { ...known, help: help() }
  /** @type {any} */
  const options = Object.fromEntries(Object.entries(all).map(([name, { type }]) => [name, { type: type === 'string' ? 'string' : 'boolean', multiple: true }]))
  const { tokens } = parseArgs({ args, options: { ...options, help: { ...options.help, short: 'h' } }, strict: false, tokens: true, allowPositionals: true })
  /** @type {Given} */
  const given = { flags: {}, rest: [] }
  for (const token of tokens) {
    if (token.kind === 'option') take(token, all, given)
    else if (first) return { ...given, rest: args.slice(token.kind === 'positional' ? token.index : token.index + 1) }
    else if (token.kind === 'positional') given.rest.push(token.value)
  }
  return given
}

/** @returns {Flag} */
function help () {
  return { type: 'boolean', says: 'this text' }
}

/** @param {any} token @param {Flags} known @param {Given} given */
function take ({ name, rawName, value, inlineValue }, known, { flags }) {
  if (!Object.hasOwn(known, name) || (rawName !== `--${name}` && rawName !== '-h')) throw new Wrong(`Unknown flag ${show(rawName)}.${meant(name, known)}`)
  const { type, multiple } = known[name]
  if (type === 'boolean' && inlineValue) throw new Wrong(`${rawName} takes no value.`)
  if (type === 'string' && (value === undefined || (!inlineValue && isFlag(value, known)))) throw new Wrong(`${rawName} needs a value.`)
  if (type === 'string' && value === '') throw new Wrong(`The value of ${rawName} is empty.`)
  if (multiple) flags[name] = [...(flags[name] ?? []), value]
  else if (Object.hasOwn(flags, name)) throw new Wrong(`${rawName} is given twice.`)
  else flags[name] = value ?? true
}

/** Somebody forgot the value. @param {string} word @param {Flags} known */
function isFlag (word, known) {
  return word.startsWith('--') && Object.hasOwn(known, word.slice(2).split('=', 1)[0])
}

/** @param {string} name @param {Flags} known */
function meant (name, known) {
  const hint = nearest(name, Object.keys(known))
  return hint === undefined ? '' : ` Did you mean --${hint}?`
}

/** @param {string} word as given */
function show (word) {
  return JSON.stringify(word.slice(0, 80))
}

/** @param {Flags} known @returns {string} a line or more for each */
function describe (known) {
  const rows = Object.entries({ ...known, help: help() }).map(([name, flag]) => [`  --${name}${valueOf(flag)}`, flag.says])
  const width = Math.min(26, Math.max(...rows.map(([left]) => left.length))) + 2
  return rows.map(([left, says]) => row(left, says, width)).join('\n')
}

/** @param {Flag} flag */
function valueOf ({ type, value = 'VALUE' }) {
  return type === 'boolean' ? '' : type === 'optional' ? `[=${value}]` : ` ${value}`
}

/** @param {string} left @param {string} says @param {number} width */
function row (left, says, width) {
  const lines = ['']
  for (const word of says.split(' ')) {
    if (lines[lines.length - 1].length + word.length >= 90 - width) lines.push('')
    lines[lines.length - 1] += `${lines[lines.length - 1] === '' ? '' : ' '}${word}`
  }
  const start = left.length >= width ? `${left}\n${' '.repeat(width)}` : left.padEnd(width)
  return start + lines.join(`\n${' '.repeat(width)}`)
}

/** A whole number. @param {string} name @param {string} text @param {number} least */
function whole (name, text, least) {
  if (!/^\d{1,9}$/.test(text) || Number(text) < least) throw new Wrong(`--${name} is a whole number from ${least}; got ${show(text)}.`)
  return Number(text)
}

module.exports = { parse, describe, whole, show, Wrong }
