'use strict'

// Reads files of spans, line by line. Nothing of a line is kept beyond the call that handles it.

const { Definitions } = require('./definitions')
const { parseSpan, spansOfOtlp } = require('./span-line')
const { isRecord } = require('./values')
const { LineSplitter, decompressed } = require('./lines')
const { open, stats } = require('./sources')
const { SkippedLines } = require('./skipped-lines')

/**
 * @typedef {import('./span-line').Span} Span
 *
 * @typedef {object} FileReport the content of a file
 * @property {string} name
 * @property {number} spans lines that are spans, or blocking callbacks
 * @property {number} skipped lines that are neither
 * @property {string[]} problems sentences
 * @property {boolean} [unreadable] it could not be read at all, or not to its end
 *
 * @typedef {object} Reading
 * @property {(span: Span, file: FileReport) => void} span
 * @property {(record: Span) => void} [intervals] is given each record of open intervals, which is no span
 * @property {(head: string) => boolean} [wants] whether the line that begins so is to be parsed
 * @property {(bytes: number, total: number | undefined) => void} [progress] total: undefined if not known
 * @property {import('./sources').Source} [source] gives the bytes of a file
 */

const HEAD_BYTES = 64

/** @type {Record<string, string>} */
const failures = {
  ENOENT: 'no such file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'is a directory',
  Z_BUF_ERROR: 'compressed data is truncated; the spans before that are counted',
  Z_DATA_ERROR: 'compressed data is damaged; the spans before that are counted'
}

/**
 * @param {string[]} names `-` is standard input
 * @param {Reading} reading
 * @returns {Promise<FileReport[]>} one for each name, in their order
 */
async function readFiles (names, reading) {
  const progress = createProgress(names, reading)
  /** @type {Map<string, string>} */
  const namesByIdentity = new Map()
  const reports = []
  for (const name of names) {
    /** @type {FileReport} */
    const report = { name: name === '-' ? 'standard input' : name, spans: 0, skipped: 0, problems: [] }
    reports.push(report)
    const identity = identityOf(name)
    const earlier = identity === undefined ? undefined : namesByIdentity.get(identity)
    if (identity !== undefined && earlier === undefined) namesByIdentity.set(identity, name)
    if (earlier === undefined) await readFile(name, report, reading, progress)
    else report.problems.push(`same file as ${earlier}; counted once`)
  }
  return reports
}

/**
 * @param {string} name
 * @param {FileReport} report
 * @param {Reading} reading
 * @param {(bytes: number) => void} progress
 */
async function readFile (name, report, reading, progress) {
  const skipped = new SkippedLines(report)
  const splitter = new LineSplitter(createHandler(report, skipped, reading))
  let bytes = 0
  const source = counted((reading.source ?? open)(name), (length) => { bytes += length; progress(length) })
  try {
    for await (const chunk of decompressed(source)) splitter.push(chunk)
    skipped.end(splitter.end())
  } catch (error) {
    skipped.end(false)
    report.problems.push(failureOf(/** @type {NodeJS.ErrnoException} */ (error)))
    report.unreadable = true
    return
  }
  if (bytes === 0) report.problems.push('file is empty')
}

/**
 * @param {AsyncIterable<Buffer>} source
 * @param {(bytes: number) => void} count
 */
async function * counted (source, count) {
  for await (const chunk of source) {
    count(chunk.length)
    yield chunk
  }
}

/**
 * @param {FileReport} report
 * @param {SkippedLines} skipped
 * @param {Reading} reading
 * @returns {import('./lines').LineHandler}
 */
function createHandler (report, skipped, { span: onSpan, intervals, wants }) {
  const definitions = new Definitions()

  /**
   * @param {any} record
   * @param {number} number
   * @param {number} size
   */
  function handle (record, number, size) {
    const span = parseSpan(definitions.resolve(record), size)
    if (typeof span === 'string') return skipped.add(span, number)
    if (span.intervals) return intervals?.(span)
    report.spans++
    onSpan(span, report)
  }

  return {
    line (bytes, start, end, number) {
      const head = Math.min(end, start + HEAD_BYTES)
      if (wants !== undefined && !wants(bytes.toString('utf8', start, head))) return
      skipped.flush()
      const line = bytes.toString('utf8', start, end)
      const record = parse(line)
      if (record === undefined) return skipped.addUnparsed(line, number)
      if (definitions.add(record)) return
      const isOtlp = isRecord(record) && Array.isArray(record.resourceSpans)
      if (!isOtlp) return handle(record, number, line.length)
      skipped.isOtlp = true
      for (const span of spansOfOtlp(record)) handle(span, number, line.length)
    },
    overlong (number) {
      skipped.flush()
      skipped.addOverlong(number)
    }
  }
}

/** @param {string} json @returns {any} undefined if it is not JSON */
function parse (json) {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

/** @param {NodeJS.ErrnoException} error */
function failureOf (error) {
  return failures[String(error.code)] ?? `cannot be read (${error.code ?? error.message})`
}

/** @param {string} name @returns {string | undefined} equal for two names of one file */
function identityOf (name) {
  if (name === '-') return '-'
  const stat = stats(name)
  return stat?.isFile() ? `${stat.dev}:${stat.ino}` : undefined
}

/** @param {string[]} names @param {Reading} reading @returns {(bytes: number) => void} */
function createProgress (names, { progress }) {
  if (progress === undefined) return () => {}
  const sizes = names.map(stats).map((stat) => stat?.isFile() ? Number(stat.size) : undefined)
  const sum = sizes.reduce((sum, size) => Number(sum) + Number(size), 0)
  const total = sizes.includes(undefined) ? undefined : sum
  let read = 0
  return (bytes) => {
    read += bytes
    progress(read, total)
  }
}

module.exports = { readFiles }
