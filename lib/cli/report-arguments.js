'use strict'

// Arguments of longstack report: what is wrong with them.

const fs = require('node:fs')
const path = require('node:path')
const { isPipe } = require('../../report/read/sources')
const { integer, quote, suggestion, UsageError } = require('./flags')

/**
 * @typedef {import('../../report/aggregate/limits').Limit} Limit
 * @typedef {import('../../report/aggregate/model').Model} Model
 */

/**
 * @param {Record<string, any>} values
 * @param {string[]} files
 * @returns {Limit[]} of --fail-if
 * @throws {UsageError}
 */
function checkArguments (values, files) {
  const { json, markdown, html, trace, compare = [], top } = values
  if (top !== undefined) integer('top', top, 1)
  checkFormats(values)
  if (files.includes('-') && compare.includes('-')) {
    throw new UsageError('Standard input can be only one of the two runs.')
  }
  if (trace !== undefined) checkTrace(values, files)
  const outputs = [html, trace].filter((file) => file !== undefined)
  checkOutputs(outputs, [...files, ...compare], json || markdown)
  return limitsOf(values)
}

/** @param {Record<string, any>} values @throws {UsageError} */
function checkFormats (values) {
  const formats = ['json', 'markdown'].filter((name) => values[name])
  if (formats.length > 1) {
    throw new UsageError(`--${formats[0]} and --${formats[1]} both go to standard output; use one of them.`)
  }
  const detail = ['full', 'tree', 'slowest', 'route'].find((name) => values[name])
  const other = formats[0] ?? ['html', 'trace'].find((name) => values[name] !== undefined)
  if (detail !== undefined && other !== undefined) {
    throw new UsageError(`--${detail} is for text and cannot be combined with --${other}.`)
  }
}

/** @param {Record<string, any>} values @throws {UsageError} */
function limitsOf ({ 'fail-if': expressions = [], compare, trace, ...values }) {
  if (expressions.length === 0) return []
  if (trace !== undefined && isOnlyTrace(values)) {
    throw new UsageError('--trace cannot be combined with --fail-if.')
  }
  const { parseLimit } = require('./limit-parser')
  const limits = expressions.map(parseLimit)
  const change = limits.find((/** @type {{ kind: string }} */ { kind }) => kind !== 'value')
  if (change !== undefined && compare === undefined) {
    throw new UsageError(`--fail-if ${quote(change.expression)} is a change: it needs --compare.`)
  }
  return limits
}

/**
 * Checks that each pattern selects a route.
 * @param {Model} model
 * @param {Record<string, any>} values
 * @param {Limit[]} limits
 * @throws {UsageError}
 */
function checkRoutes (model, { route }, limits) {
  const { runsOf } = require('../../report/aggregate/changes')
  const { routePattern } = require('../../report/aggregate/route-names')
  const names = [...new Set(runsOf(model).flatMap(({ routes }) => routes.map(({ name }) => name)))]
  if (names.length === 0) return
  for (const pattern of [route, ...limits.map((limit) => limit.pattern)]) {
    if (pattern === undefined || names.some(routePattern(pattern))) continue
    throw new UsageError(`No route matches ${quote(pattern)}.${suggestion(pattern, names)}`)
  }
}

/** Returns whether a trace is the only output. @param {Record<string, any>} values */
function isOnlyTrace ({ json, markdown, html }) {
  return !json && !markdown && html === undefined
}

/** @param {Record<string, any>} values @param {string[]} files @throws {UsageError} */
function checkTrace (values, files) {
  const isOnly = isOnlyTrace(values)
  if (isOnly && values.compare !== undefined) {
    throw new UsageError('--trace cannot be combined with --compare.')
  }
  if (!isOnly && files.some((file) => file === '-' || isPipe(file))) {
    throw new UsageError('Piped input can be read only once; use --trace on its own.')
  }
}

/**
 * @param {string[]} outputs
 * @param {string[]} inputs
 * @param {boolean} usesStdout another output goes to standard output
 * @throws {UsageError}
 */
function checkOutputs (outputs, inputs, usesStdout) {
  const files = outputs.filter((output) => output !== '-')
  if (outputs.length - files.length + (usesStdout ? 1 : 0) > 1) {
    throw new UsageError('Only one output can go to standard output.')
  }
  if (files.length === 2 && real(files[0]) === real(files[1])) {
    throw new UsageError('--html and --trace name the same file.')
  }
  const clash = files.find((output) => inputs.some((input) => input !== '-' && real(input) === real(output)))
  if (clash !== undefined) throw new UsageError(`${quote(clash)} is an input file and would be overwritten.`)
}

/** @param {string} file */
function real (file) {
  try {
    return fs.realpathSync(file)
  } catch {
    return path.resolve(file)
  }
}

module.exports = { checkArguments, checkRoutes, isOnlyTrace }
