'use strict'

// Makes values that longstack returns print as the text of the report, not as data: in util.inspect and thus
// in console.log, the REPL, %o and assertion messages, and in String() or a template. The properties are not
// enumerable: JSON, spread, deepEqual and structuredClone do not see them, and console.dir prints the data.
// Names and values are printed as aligned rows.

const { inspect } = require('node:util')
const guard = require('../core/guard')

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB']

/**
 * @typedef {{ colors?: boolean, stylize: (text: string, style: string) => string }} InspectOptions
 *
 * @typedef {object} Printed
 * @property {string} text the report
 * @property {string} title printed instead if nested too deep
 */

/**
 * Returns a function that makes util.inspect and String() print an object as its report.
 * @template {object} T
 * @param {(object: T) => Printed | undefined} print called on printing; prints data if it returns undefined
 * @returns {<O extends T>(object: O) => O}
 */
function createInspectable (print) {
  /**
   * @this {T}
   * @param {number | null} depth
   * @param {InspectOptions} options
   */
  function custom (depth, options) {
    const printed = print(this)
    return printed === undefined ? this : inspectPrinted(printed, depth, options)
  }

  /** @this {T} */
  function toString () {
    const plain = Array.isArray(this) ? Array.prototype.toString : Object.prototype.toString
    return print(this)?.text ?? plain.call(this)
  }

  const attributes = { writable: true, enumerable: false, configurable: true }
  return (object) => Object.defineProperties(object, {
    [inspect.custom]: { value: custom, ...attributes },
    toString: { value: toString, ...attributes }
  })
}

/**
 * Reads the printed data of the elements of a list.
 * @template {object} T
 * @template P
 * @param {T[]} list
 * @param {{ read: (element: T) => P | undefined }} tag that holds the data
 * @returns {P[] | undefined} undefined if an element has none: the program has added it
 */
function printedOf (list, tag) {
  const printed = list.map((element) => tag.read(element))
  return printed.includes(undefined) ? undefined : /** @type {P[]} */ (printed)
}

/**
 * Returns the result of an inspect.custom method for a report.
 * @param {Printed} printed
 * @param {number | null} depth
 * @param {InspectOptions} options
 * @returns {unknown}
 */
function inspectPrinted ({ text, title }, depth, options) {
  if (depth !== null && depth < 0) return options.stylize(`[${title}]`, 'special')
  const paint = () => require('./paint').paint(text, require('./terminal').inspectStyle())
  const painted = options.colors ? guard.run(paint) : text
  // util.inspect indents its result for an object, not strings (formatValue, lib/internal/util/inspect.js).
  return { [inspect.custom]: () => painted }
}

/** @param {Record<string, string | undefined>} values by name; undefined ones are left out */
function formatRows (values) {
  const rows = Object.entries(values).filter(([, value]) => value !== undefined)
  const width = Math.max(...rows.map(([name]) => name.length))
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join('\n')
}

/** Formats a size: `1 byte`, `64 MiB`, `1.5 KiB`. @param {number} count of bytes */
function formatBytes (count) {
  let size = count
  let unit = 0
  while (size >= 1024 && unit < UNITS.length - 1) {
    size /= 1024
    unit++
  }
  return `${Number.isInteger(size) ? size : size.toFixed(1)} ${count === 1 ? 'byte' : UNITS[unit]}`
}

/** Formats an integer with separators: `12,345`. @param {number} count */
function formatCount (count) {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ',')
}

module.exports = { createInspectable, formatBytes, formatCount, formatRows, inspectPrinted, printedOf }
