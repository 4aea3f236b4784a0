'use strict'

// longstack report: reads files of spans with lib/report, and prints or writes the report.

const fs = require('node:fs')
const path = require('node:path')
const { isPipe } = require('../report/read/sources')
const { describe, integer, parse, quote, UsageError } = require('./flags')
const { colours, createProgress, print, printError, width } = require('./terminal')

/** @typedef {import('../report/aggregate/model').Model} Model */

const MIN_SLOWEST = 20
const MAX_SLOWEST = 1000
const TERMINAL_COMMANDS = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** @type {import('./flags').Flags} */
const flags = {
  compare: {
    type: 'string',
    multiple: true,
    value: 'FILE',
    description: 'another run to compare with; changes are from the first run to this one. Can be repeated'
  },
  top: {
    type: 'string',
    value: 'N',
    description: 'number of routes, blockers and slow requests to print; default 10, of slow requests 5'
  },
  json: { type: 'boolean', description: 'print the whole report as one JSON object' },
  csv: { type: 'boolean', description: 'print the figures of each route as CSV' },
  html: { type: 'string', value: 'OUT', description: 'write a self-contained page for the browser' },
  trace: {
    type: 'string',
    value: 'OUT',
    description: 'write the spans as Chrome trace events, for https://ui.perfetto.dev or chrome://tracing'
  }
}

const help = `Summarizes spans: per route count, rate, errors, quartiles, density and box plot; blockers; the
slowest requests with the time they spent running, waiting and delayed; and those still open.

  longstack report [flags] FILE…

A file holds one span per line, as LONGSTACK_SPANS=FILE or OpenTelemetry's file exporter writes them; it
may be compressed with gzip. - is standard input.

${describe(flags)}

Exit code: 0; 1 if a file cannot be read or no spans are found; 2 for wrong usage.
`

/** @param {string[]} args */
async function main (args) {
  const { values, operands: files } = parse(args, flags)
  if (values.help) return await print(help)
  check(values, files)
  if (values.trace !== undefined) await writeTrace(files, values.trace)
  if (values.trace !== undefined && isOnlyTrace(values)) return
  const model = await read(files, values)
  await output(model, values)
  return isIncomplete(model) || isEmpty(model) ? 1 : 0
}

/** @param {Record<string, any>} values @param {string[]} files @throws {UsageError} */
function check (values, files) {
  const { json, csv, html, trace, compare = [], top } = values
  if (files.length === 0) throw new UsageError('Missing file argument.')
  if (top !== undefined) integer('top', top, 1)
  if (json && csv) throw new UsageError('--json and --csv both go to standard output; use one of them.')
  if (files.includes('-') && compare.includes('-')) {
    throw new UsageError('Standard input can be only one of the two runs.')
  }
  if (trace !== undefined) checkTrace(values, files)
  checkOutputs([html, trace].filter((file) => file !== undefined), [...files, ...compare], json || csv)
}

/** Returns whether a trace is the only output. @param {Record<string, any>} values */
function isOnlyTrace ({ json, csv, html }) {
  return !json && !csv && html === undefined
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
  if (files.length === 2 && isSameFile(files[0], files[1])) {
    throw new UsageError('--html and --trace name the same file.')
  }
  const clash = files.find((output) => inputs.some((input) => input !== '-' && isSameFile(input, output)))
  if (clash !== undefined) throw new UsageError(`${quote(clash)} is an input file and would be overwritten.`)
}

/** @param {string} a @param {string} b */
function isSameFile (a, b) {
  return real(a) === real(b)
}

/** @param {string} file */
function real (file) {
  try {
    return fs.realpathSync(file)
  } catch {
    return path.resolve(file)
  }
}

/** @param {string[]} files @param {Record<string, any>} values @returns {Promise<Model>} */
async function read (files, { compare, json, html, top }) {
  const { createModel } = require('../report/aggregate/model')
  const progress = createProgress()
  try {
    const slowest = Math.min(Math.max(MIN_SLOWEST, Number(top ?? 0)), MAX_SLOWEST)
    const traces = json || html !== undefined
    return await createModel(files, { compare, slowest, traces, progress: progress.step })
  } finally {
    progress.end()
  }
}

/** @param {Model} model @param {Record<string, any>} values */
async function output (model, { json, csv, html, top }) {
  if (html !== undefined) await writePage(model, html)
  if (json) return await print(asJson(model))
  if (csv) await print(require('../report/render/csv').csv(model))
  const { compare } = model
  if (csv || html !== undefined || (isEmpty(model) && compare === undefined)) return printProblems(model)
  const options = { colours: colours(), width: width(), top: top === undefined ? undefined : Number(top) }
  await print(compare === undefined
    ? require('../report/render/text').report(model, options)
    : require('../report/render/compare').comparison(model, options))
}

/** Renders JSON; characters that a terminal could take for a command are escaped. @param {Model} model */
function asJson (model) {
  const text = JSON.stringify(model, undefined, 2)
  const escape = (/** @type {string} */ char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
  return `${text.replace(TERMINAL_COMMANDS, escape)}\n`
}

/** @param {Model} model @param {string} file */
async function writePage (model, file) {
  const title = model.files.map(({ name }) => path.basename(name)).join(', ')
  const { createPage } = require('../report/render/page')
  const page = createPage(model, { title: `longstack report: ${title}` })
  if (file === '-') return await print(page)
  fs.writeFileSync(file, page)
  printError(`Wrote ${file} (${(page.length / 1e6).toFixed(1)} MB).`)
}

/** @param {string[]} files @param {string} target */
async function writeTrace (files, target) {
  const { writeTrace: write } = require('../report/render/trace-file')
  const progress = createProgress()
  const { spans, omitted, problems } = await write(files, target, { progress: progress.step })
  progress.end()
  for (const problem of problems) printError(problem)
  const more = omitted > 0 ? `; ${omitted} more are omitted: too many for a viewer` : ''
  printError(target === '-'
    ? `${spans} spans${more}.`
    : `Wrote ${target}: ${spans} spans${more}. Open it in https://ui.perfetto.dev or chrome://tracing.`)
}

/** Prints the problems of the files, for outputs that do not contain them. @param {Model} model */
function printProblems (model) {
  const { word } = require('../report/render/text-parts')
  for (const { files } of [model, ...(model.compare === undefined ? [] : [model.compare])]) {
    for (const { name, problems } of files) {
      for (const problem of problems) printError(`longstack: ${word(name, 200)}: ${word(problem, 300)}`)
    }
  }
  if (isEmpty(model)) printError('longstack: no spans found.')
}

/** @param {Model} model */
function isEmpty ({ span, compare }) {
  return span === undefined || (compare !== undefined && compare.span === undefined)
}

/** Returns whether a file could not be read to its end. @param {Model} model @returns {boolean} */
function isIncomplete ({ files, compare }) {
  const isUnreadable = files.some(({ unreadable }) => unreadable === true)
  return isUnreadable || (compare !== undefined && isIncomplete(compare))
}

module.exports = { help, main }
