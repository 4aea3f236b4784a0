'use strict'

// longstack report: files of spans in, a report out. What is read is in lib/report, what is shown in lib/views.

const fs = require('node:fs')
const path = require('node:path')
const { isPipe } = require('../report/read/sources')
const { describe, parse, show, whole, Wrong } = require('./flags')
const { colours, createProgress, print, say, width } = require('./terminal')

/** @typedef {import('../report/aggregate/model').Model} Model */

/** @type {import('./flags').Flags} */
const flags = {
  compare: { type: 'string', multiple: true, value: 'FILE', says: 'another run to compare with; changes are from the first run to this one. May be given more than once' },
  top: { type: 'string', value: 'N', says: 'how many routes, blockers and slow requests; default 10, of the slowest 5' },
  json: { type: 'boolean', says: 'all of it as one JSON object' },
  csv: { type: 'boolean', says: 'the figures of each route as CSV' },
  html: { type: 'string', value: 'OUT', says: 'a page for the browser, in one file that needs no other' },
  trace: { type: 'string', value: 'OUT', says: 'the spans as Chrome trace events, for https://ui.perfetto.dev or chrome://tracing' }
}

const help = `Spans to a summary: per route count, rate, errors, quartiles, density and box plot; who held others up, the slowest
requests with the time they spent running, waiting and delayed, and those still open.

  longstack report [flags] FILE…

A file holds one span a line, as LONGSTACK_SPANS=FILE writes them, or OpenTelemetry's file exporter; it may be
compressed with gzip. - is standard input.

${describe(flags)}

Exit code: 0, or 1 where a file cannot be read or no span is found, or 2 for wrong usage.
`

/** @param {string[]} args */
async function main (args) {
  const { flags: given, rest } = parse(args, flags)
  if (given.help) return await print(help)
  check(given, rest)
  if (given.trace !== undefined) await writeTrace(rest, given.trace)
  if (given.trace !== undefined && !given.json && !given.csv && given.html === undefined) return
  const model = await read(rest, given)
  await deliver(model, given)
  return broken(model) || empty(model) ? 1 : 0
}

/** What cannot be meant. @param {Record<string, any>} given @param {string[]} files */
function check (given, files) {
  const { json, csv, html, trace, compare = [], top } = given
  if (files.length === 0) throw new Wrong('No file is named.')
  if (top !== undefined) whole('top', top, 1)
  if (json && csv) throw new Wrong('--json and --csv both go to standard output: give one of them.')
  if (files.includes('-') && compare.includes('-')) throw new Wrong('Standard input can be one of the two runs only.')
  if (trace !== undefined) checkTrace(given, files)
  checkOutputs([html, trace].filter((to) => to !== undefined), [...files, ...compare], json || csv)
}

/** @param {Record<string, any>} given @param {string[]} files */
function checkTrace ({ json, csv, html, compare }, files) {
  const alone = !json && !csv && html === undefined
  if (alone && compare !== undefined) throw new Wrong('--trace compares nothing.')
  if (!alone && files.some((file) => file === '-' || isPipe(file))) throw new Wrong('What comes through a pipe is read once: give --trace alone.')
}

/** @param {string[]} outputs @param {string[]} inputs @param {boolean} text something else goes to standard output */
function checkOutputs (outputs, inputs, text) {
  if (outputs.filter((to) => to === '-').length + (text ? 1 : 0) > 1) throw new Wrong('Only one thing can go to standard output.')
  const named = outputs.filter((to) => to !== '-')
  if (named.length === 2 && same(named[0], named[1])) throw new Wrong('--html and --trace name the same file.')
  const clash = named.find((to) => inputs.some((file) => file !== '-' && same(file, to)))
  if (clash !== undefined) throw new Wrong(`${show(clash)} is one of the files to be read; it would be overwritten.`)
}

/** @param {string} a @param {string} b */
function same (a, b) {
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

/** @param {string[]} files @param {Record<string, any>} given @returns {Promise<Model>} */
async function read (files, { compare, json, html, top }) {
  const progress = createProgress()
  try {
    const slowest = Math.max(20, Number(top ?? 0))
    return await require('../report/aggregate/model').createModel(files, { compare, slowest: Math.min(slowest, 1000), traces: json || html !== undefined, progress: progress.step })
  } finally {
    progress.end()
  }
}

/** @param {Model} model @param {Record<string, any>} given */
async function deliver (model, { json, csv, html, top }) {
  if (html !== undefined) await writePage(model, html)
  if (json) return await print(asJson(model))
  if (csv) await print(require('../report/render/csv').csv(model))
  if (csv || html !== undefined || (empty(model) && model.compare === undefined)) return complain(model)
  const look = { colours: colours(), width: width(), top: top === undefined ? undefined : Number(top) }
  await print(model.compare === undefined ? require('../report/render/text').report(model, look) : require('../report/render/compare').comparison(model, look))
}

/** The same data; what a terminal could take for an order is escaped. @param {Model} model */
function asJson (model) {
  const text = JSON.stringify(model, undefined, 2)
  return `${text.replace(/[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`)}\n`
}

/** @param {Model} model @param {string} to */
async function writePage (model, to) {
  const title = model.files.map(({ name }) => path.basename(name)).join(', ')
  const page = await require('../report/render/page').createPage(model, { title: `longstack report: ${title}` })
  if (to === '-') return await print(page)
  fs.writeFileSync(to, page)
  say(`Wrote ${to} (${(page.length / 1e6).toFixed(1)} MB).`)
}

/** @param {string[]} files @param {string} to */
async function writeTrace (files, to) {
  const progress = createProgress()
  const { spans, omitted, problems } = await require('../report/render/trace-file').writeTrace(files, to, { progress: progress.step })
  progress.end()
  for (const problem of problems) say(problem)
  const rest = omitted > 0 ? `; ${omitted} more are omitted: too many for a viewer` : ''
  say(to === '-' ? `${spans} spans${rest}.` : `Wrote ${to}: ${spans} spans${rest}. Open it in https://ui.perfetto.dev or chrome://tracing.`)
}

/** What is wrong with the files, where the report does not say so itself. @param {Model} model */
function complain (model) {
  const { word } = require('../report/render/text-parts')
  for (const { files } of [model, ...(model.compare === undefined ? [] : [model.compare])]) {
    for (const { name, problems } of files) for (const problem of problems) say(`longstack: ${word(name, 200)}: ${word(problem, 300)}`)
  }
  if (empty(model)) say('longstack: no spans found.')
}

/** @param {Model} model */
function empty ({ span, compare }) {
  return span === undefined || (compare !== undefined && compare.span === undefined)
}

/** A file could not be read, or not to its end. @param {Model} model @returns {boolean} */
function broken ({ files, compare }) {
  return files.some(({ unreadable }) => unreadable === true) || (compare !== undefined && broken(compare))
}

module.exports = { help, main }
