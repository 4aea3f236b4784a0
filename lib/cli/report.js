'use strict'

// longstack report: reads span files, and prints or writes the report.

const fs = require('node:fs')
const path = require('node:path')
const v8 = require('node:v8')
const { isPipe } = require('../../report/read/sources')
const { attempt } = require('../files')
const { integer, quote, suggestion, UsageError } = require('./flags')
const { asJson, colours, print, printError, width, withProgress, write } = require('./terminal')

/**
 * @typedef {import('../../report/aggregate/limits').Limit} Limit
 * @typedef {import('../../report/aggregate/model').Model} Model
 * @typedef {import('../../report/aggregate/what-if').PoolChange} PoolChange
 */

const MIN_SLOWEST = 20
const MAX_SLOWEST = 1000
const MAX_PEERS = 10 // in a message
const POOL = /^ *pool +(?<peer>\S+) +(?<from>\d{1,5}) *(?:->|→) *(?<to>\d{1,5}) *$/

/** @type {import('./commands').Main} operands: files */
async function main (values, operands) {
  const files = operands.flatMap(boxesOf)
  const limits = checkArguments(values, files)
  const changes = changesOf(values)
  v8.setFlagsFromString('--semi-space-growth-factor=1') // a third less memory: bench/report.js
  if (values.trace !== undefined) await writeTrace(files, values.trace)
  if (isOnlyTrace(values)) return
  const model = await read(files, values, changes)
  checkRoutes(model, values, limits)
  checkPeers(model, changes)
  if (limits.length > 0) model.limits = require('../../report/aggregate/limits').checkLimits(model, limits)
  await output(model, values)
  const { runsOf } = require('../../report/aggregate/changes')
  const isIncomplete = runsOf(model).some(({ span, files }) =>
    span === undefined || files.some(({ unreadable }) => unreadable === true))
  if (isIncomplete) return 1
  return model.limits?.some(({ state }) => state === 'exceeded') ? 3 : 0
}

/**
 * Returns a file, or the black boxes in a directory: those of processes that died, or else all.
 * @param {string} name
 * @returns {string[]}
 */
function boxesOf (name) {
  if (attempt(() => fs.statSync(name).isDirectory()) !== true) return [name]
  const boxes = require('../record/box-files').boxesIn(name)
  const dead = boxes.filter(({ isDead }) => isDead)
  return boxes.length === 0 ? [name] : (dead.length === 0 ? boxes : dead).map(({ file }) => file)
}

/**
 * @param {string[]} files
 * @param {Record<string, any>} values
 * @param {PoolChange[] | undefined} whatIf
 * @returns {Promise<Model>}
 */
async function read (files, { compare, json, html, top }, whatIf) {
  const { createModel } = require('../../report/aggregate/model')
  const slowest = Math.min(Math.max(MIN_SLOWEST, Number(top ?? 0)), MAX_SLOWEST)
  const traces = json || html !== undefined
  return await withProgress((progress) => createModel(files, { compare, slowest, traces, whatIf, progress }))
}

/** @param {Model} model @param {Record<string, any>} values */
async function output (model, { json, markdown, html, ...values }) {
  const top = values.top === undefined ? undefined : Number(values.top)
  if (html !== undefined) {
    await writePage(model, html, `report: ${model.files.map(({ name }) => path.basename(name)).join(', ')}`)
  }
  if (json) {
    await print(asJson(model))
    return printLimits(model)
  }
  const hasNothing = model.span === undefined && model.compare === undefined && model.verdict.length === 0
  if (markdown && !hasNothing) await print(require('../../report/render/markdown').markdown(model, { top }))
  if (markdown || html !== undefined || hasNothing) return printProblems(model)
  const { full, route } = values
  /** @type {import('../../report/render/text-parts').TextOptions['tree']} */
  const tree = values.slowest ? 'slowest' : values.tree ? 'all' : undefined
  const options = { colours: colours(), width: width(), top, full, route, tree }
  await print(require('../../report/render/text').report(model, options))
}

/** @param {Model} model @param {string} file @param {string} title */
async function writePage (model, file, title) {
  const { createPage } = require('../../report/render/page')
  await write(file, createPage(model, { title: `longstack ${title}` }))
}

/** @param {string[]} files @param {string} target */
async function writeTrace (files, target) {
  const { writeTrace: write } = require('../../report/render/chrome-trace')
  const { spans, omitted, problems } = await withProgress((progress) => write(files, target, { progress }))
  for (const problem of problems) printError(problem)
  const more = omitted > 0 ? `; ${omitted} more are omitted: too many for a viewer` : ''
  printError(target === '-'
    ? `${spans} spans${more}.`
    : `Wrote ${target}: ${spans} spans${more}. Open it in https://ui.perfetto.dev or chrome://tracing.`)
}

/** Prints the problems of the files, for outputs that do not contain them. @param {Model} model */
function printProblems (model) {
  const { runsOf } = require('../../report/aggregate/changes')
  const { problemsOf } = require('../../report/render/text')
  const runs = runsOf(model)
  for (const problem of runs.flatMap(problemsOf)) printError(`longstack: ${problem}`)
  if (runs.some(({ span }) => span === undefined)) printError('longstack: no spans found.')
  printLimits(model)
}

/** Prints limits to stderr, for machine-readable outputs. @param {Model} model */
function printLimits (model) {
  if (model.limits === undefined) return
  const { createContext } = require('../../report/render/text-parts')
  const { limitLines } = require('../../report/render/text-sections')
  for (const line of limitLines(model, createContext([], { width: width() }))) printError(line)
}

/**
 * @param {Record<string, any>} values
 * @param {string[]} files
 * @returns {Limit[]} of --fail-if
 * @throws {UsageError}
 */
function checkArguments (values, files) {
  const { json, markdown, html, trace, compare, top } = values
  if (top !== undefined) integer('top', top, 1)
  checkFormats(values)
  if (files.includes('-') && compare?.includes('-')) {
    throw new UsageError('Standard input can be only one of the two runs.')
  }
  if (isOnlyTrace(values)) {
    if (compare !== undefined) throw new UsageError('--trace cannot be combined with --compare.')
  } else if (trace !== undefined && files.some((file) => file === '-' || isPipe(file))) {
    throw new UsageError('Piped input can be read only once; use --trace on its own.')
  }
  const outputs = [html, trace].filter((file) => file !== undefined)
  checkOutputs(outputs, [...files, ...compare ?? []], json || markdown)
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
function limitsOf (values) {
  const { 'fail-if': expressions = [], compare } = values
  if (expressions.length === 0) return []
  if (isOnlyTrace(values)) throw new UsageError('--trace cannot be combined with --fail-if.')
  const { parseLimit } = require('./limit-parser')
  const limits = expressions.map((/** @type {string} */ expression) => parseLimit(expression))
  const change = limits.find((/** @type {{ kind: string }} */ { kind }) => kind !== 'value')
  if (change !== undefined && compare === undefined) {
    throw new UsageError(`--fail-if ${quote(change.expression)} is a change: it needs --compare.`)
  }
  return limits
}

/**
 * @param {Record<string, any>} values
 * @returns {PoolChange[] | undefined} of --what-if
 * @throws {UsageError}
 */
function changesOf ({ 'what-if': expressions, ...values }) {
  const other = ['compare', 'markdown', 'tree', 'slowest'].find((name) => values[name]) ??
    (isOnlyTrace(values) ? 'trace' : undefined)
  if (expressions !== undefined && !values.json && other !== undefined) {
    throw new UsageError(`--what-if is for text, pages and --json; it cannot be combined with --${other}.`)
  }
  return expressions?.map((/** @type {string} */ expression) => {
    const { peer = '', from, to } = POOL.exec(expression)?.groups ?? {}
    if (Number(from) > 0 && Number(to) > 0) return { peer, from: Number(from), to: Number(to) }
    throw new UsageError(`--what-if ${quote(expression)}: expected a pool with its connections before and ` +
      'after, for example "pool 127.0.0.1:5432 6 -> 12".')
  })
}

/** @param {Model} model @param {PoolChange[]} [changes] @throws {UsageError} */
function checkPeers ({ experiments }, changes = []) {
  const peers = experiments?.peers ?? []
  const unknown = changes.find(({ peer }) => peers.length > 0 && !peers.includes(peer))
  if (unknown === undefined) return
  const known = peers.slice(0, MAX_PEERS).join(', ')
  throw new UsageError(`--what-if: no request queries ${quote(unknown.peer)}, but ${known}.`)
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
function isOnlyTrace ({ trace, json, markdown, html }) {
  return trace !== undefined && !json && !markdown && html === undefined
}

/**
 * @param {string[]} outputs
 * @param {string[]} inputs
 * @param {boolean} usesStdout another output goes to stdout
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
  return attempt(() => fs.realpathSync(file)) ?? path.resolve(file)
}

module.exports = { main, writePage }
