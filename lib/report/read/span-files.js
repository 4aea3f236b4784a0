'use strict'

// Reads files of spans, line after line, and says in sentences what is wrong with them. Nothing is kept of a line
// beyond the call that takes it.

const { check, fromOtlp, isObject, reasons } = require('./span-line')
const { createSplitter, unpacked, LONGEST } = require('./lines')
const { open, stats } = require('./sources')

/**
 * @typedef {import('./span-line').Span} Span
 *
 * @typedef {object} FileReport what a file held
 * @property {string} name
 * @property {number} spans lines that are spans, or blocked runs
 * @property {number} skipped lines that are neither, and were left out
 * @property {string[]} problems sentences
 * @property {boolean} [unreadable] it could not be read at all, or not to its end
 *
 * @typedef {object} Reading
 * @property {(span: Span, file: FileReport) => void} span
 * @property {(line: string) => boolean} [wants] whether a line is to be looked at
 * @property {(bytes: number, of: number | undefined) => void} [progress] how much of how much, where that is known
 * @property {import('./sources').Source} [source] gives the bytes of a file
 */

/** @type {Record<string, string>} */
const failures = {
  ENOENT: 'there is no such file',
  EACCES: 'it may not be read',
  EPERM: 'it may not be read',
  EISDIR: 'it is a directory',
  Z_BUF_ERROR: 'its compressed data end too early; what came before is counted',
  Z_DATA_ERROR: 'its compressed data are damaged; what came before is counted'
}

/**
 * @param {string[]} names `-` is standard input
 * @param {Reading} reading
 * @returns {Promise<FileReport[]>} one for each file, in their order
 */
async function readFiles (names, reading) {
  const progress = createProgress(names, reading)
  /** @type {Map<string, string>} */
  const before = new Map()
  const reports = []
  for (const name of names) {
    /** @type {FileReport} */
    const report = { name: name === '-' ? 'standard input' : name, spans: 0, skipped: 0, problems: [] }
    reports.push(report)
    const id = identity(name)
    const twin = id === undefined ? undefined : before.get(id)
    if (id !== undefined && twin === undefined) before.set(id, name)
    if (twin === undefined) await readOne(name, report, reading, progress)
    else report.problems.push(`it is the same file as ${twin}, and is counted once`)
  }
  return reports
}

/** @param {string} name @param {FileReport} report @param {Reading} reading @param {(bytes: number) => void} progress */
async function readOne (name, report, reading, progress) {
  const left = createLeftOut(report)
  const splitter = createSplitter(createTaker(report, left, reading))
  let read = 0
  try {
    for await (const piece of unpacked(counted((reading.source ?? open)(name), (bytes) => { read += bytes; progress(bytes) }))) splitter.push(piece)
    left.end(splitter.end())
  } catch (error) {
    left.end(false)
    report.problems.push(failure(/** @type {NodeJS.ErrnoException} */ (error)))
    report.unreadable = true
    return
  }
  if (read === 0) report.problems.push('it is empty')
}

/** @param {AsyncIterable<Buffer>} source @param {(bytes: number) => void} count */
async function * counted (source, count) {
  for await (const piece of source) {
    count(piece.length)
    yield piece
  }
}

/**
 * What is done with a line.
 * @param {FileReport} report
 * @param {ReturnType<typeof createLeftOut>} left
 * @param {Reading} reading
 * @returns {import('./lines').Taker}
 */
function createTaker (report, left, { span: take, wants }) {
  /** @param {any} record @param {number} number @param {number} size */
  function one (record, number, size) {
    const span = check(record, size)
    if (typeof span === 'string') return left.out(span, number)
    report.spans++
    take(span, report)
  }

  return {
    line (line, number) {
      if (wants !== undefined && !wants(line)) return
      left.flush()
      let record
      try {
        record = JSON.parse(line)
      } catch {
        return left.unparsed(line, number)
      }
      if (!isObject(record) || !Array.isArray(record.resourceSpans)) return one(record, number, line.length)
      left.foreign()
      for (const span of fromOtlp(record)) one(span, number, line.length)
    },
    long (number) {
      left.flush()
      left.long(number)
    }
  }
}

/** Counts what is left out of a file, and says why. @param {FileReport} report */
function createLeftOut (report) {
  /** @type {Map<import('./span-line').Reason, { count: number, first: number }>} */
  const counts = new Map()
  /** @type {{ line: string, number: number } | undefined} the latest line that is not JSON: it may be the last one, cut short */
  let pending
  let otlp = false
  let binary = false

  /** @param {import('./span-line').Reason} reason @param {number} number */
  function out (reason, number) {
    report.skipped++
    const known = counts.get(reason)
    if (known === undefined) counts.set(reason, { count: 1, first: number })
    else known.count++
  }

  function flush () {
    if (pending === undefined) return
    const { line, number } = pending
    pending = undefined
    if (number === 1 && /[\0\ufffd]/.test(line.slice(0, 1000))) binary = true
    out('json', number)
  }

  return {
    out,
    flush,
    /** @param {string} line @param {number} number */
    unparsed (line, number) {
      pending = { line: line.slice(0, 1000), number }
    },
    /** @param {number} number */
    long (number) {
      report.skipped++
      report.problems.push(`line ${number} is longer than ${LONGEST >> 20} MB, and is left out`)
    },
    foreign () {
      otlp = true
    },
    /** @param {boolean} short the last line has no end */
    end (short) {
      if (short && pending !== undefined && pending.line.startsWith('{')) {
        report.skipped++
        report.problems.push(`line ${pending.number}, the last, is cut short, and is left out`)
        pending = undefined
      }
      flush()
      for (const [reason, { count, first }] of counts) report.problems.push(sentence(count, reasons[reason], first))
      if (report.spans === 0 && report.skipped > 0) report.problems.push(`no line of it is a span${binary ? ': it is a binary file, or text in another encoding than UTF-8' : ''}`)
      if (otlp) report.problems.push("OpenTelemetry's file exporter wrote it: what only longstack records may be missing")
    }
  }
}

/** @param {number} count @param {string} reason @param {number} first */
function sentence (count, reason, first) {
  const how = reason.startsWith('of') || reason.startsWith('with') || reason.startsWith('ended') ? ` ${reason}` : `: ${reason}`
  return count === 1 ? `line ${first} is left out${how}` : `${count} lines are left out${how}; the first is line ${first}`
}

/** @param {NodeJS.ErrnoException} error */
function failure (error) {
  return failures[String(error.code)] ?? `it cannot be read (${error.code ?? error.message})`
}

/** @param {string} name @returns {string | undefined} the same for two names of one file */
function identity (name) {
  if (name === '-') return '-'
  const stat = stats(name)
  return stat?.isFile() ? `${stat.dev}:${stat.ino}` : undefined
}

/** @param {string[]} names @param {Reading} reading @returns {(bytes: number) => void} */
function createProgress (names, { progress }) {
  if (progress === undefined) return () => {}
  const sizes = names.map(stats).map((stat) => stat?.isFile() ? Number(stat.size) : undefined)
  const total = sizes.includes(undefined) ? undefined : sizes.reduce((sum, size) => Number(sum) + Number(size), 0)
  let read = 0
  return (bytes) => {
    read += bytes
    progress(read, total)
  }
}

module.exports = { readFiles }
