'use strict'

// Reads span files line by line, and recordings by converting them to the lines of their spans. No line
// outlives the call that handles it.

const { unboxed } = require('./box-file')
const { Definitions } = require('./definitions')
const { RecordedLines } = require('./recorded-lines')
const { inOrder } = require('./recording-file')
const {
  LineSplitter, MAX_LINE_BYTES, decompressed, fileFailures, open, stats, withForm
} = require('./sources')
const { parseSpan, reasons, spansOfOtlp } = require('./span-line')
const { parseJson } = require('./values')
const { getOrAdd } = require('../../lib/group-by')

/**
 * @typedef {import('./span-line').Span} Span
 * @typedef {import('./span-line').Reason} Reason
 * @typedef {import('./sources').LineHandler} LineHandler
 *
 * @typedef {object} FileReport summary of one file
 * @property {string} name
 * @property {number} spans lines that are spans or blocking callbacks
 * @property {number} skipped all other lines
 * @property {string[]} problems sentences
 * @property {boolean} [unreadable] could not be read at all, or not to the end
 *
 * @typedef {object} Reading
 * @property {(span: Span, file: FileReport) => void} span
 * @property {(record: Span) => void} [facts] called for each record that is not a span
 * @property {(head: string) => boolean} [wants] whether to parse the line that starts with this head
 * @property {(bytes: number, total: number | undefined) => void} [progress] total is undefined if unknown
 * @property {import('./sources').Source} [source] opens a file
 * @property {boolean} [withOpen] see RecordedLines
 */

const HEAD_BYTES = 64
const PENDING_CHARS = 1000

/** @type {Record<string, string>} */
const failures = {
  ...fileFailures,
  Z_BUF_ERROR: 'compressed data is truncated; the spans before that are counted',
  Z_DATA_ERROR: 'compressed data is damaged; the spans before that are counted'
}

/**
 * @param {string[]} names `-` is standard input
 * @param {Reading} reading
 * @returns {Promise<FileReport[]>} one per name, in the same order
 */
async function readFiles (names, reading) {
  const progress = createProgress(names, reading)
  const recordings = new Recordings(reading.withOpen)
  /** @type {Map<string, string>} */
  const namesByIdentity = new Map()
  /** @type {FileReport[]} */
  const reports = names.map((name) => {
    return { name: name === '-' ? 'standard input' : name, spans: 0, skipped: 0, problems: [] }
  })
  for (const i of placesInOrder(names)) {
    const [name, report] = [names[i], reports[i]]
    const identity = identityOf(name)
    const earlier = identity === undefined ? undefined : namesByIdentity.get(identity)
    if (identity !== undefined && earlier === undefined) namesByIdentity.set(identity, name)
    if (earlier === undefined) await readFile(name, report, reading, progress, recordings)
    else report.problems.push(`same file as ${earlier}; counted once`)
  }
  recordings.end()
  return reports
}

/**
 * Returns the order in which to read the files; parts of one recording are read in order of time.
 * @param {string[]} names
 */
function placesInOrder (names) {
  const places = names.map((_, i) => i)
  if (names.length === 1) return places
  const order = inOrder(names)
  return places.sort((a, b) => order.indexOf(names[a]) - order.indexOf(names[b]))
}

/**
 * @param {string} name
 * @param {FileReport} report
 * @param {Reading} reading
 * @param {(bytes: number) => void} progress
 * @param {Recordings} recordings
 */
async function readFile (name, report, reading, progress, recordings) {
  const lines = new FileLines(report, reading)
  let size = 0
  const counted = async function * () {
    for await (const chunk of (reading.source ?? open)(name)) {
      size += chunk.length
      progress(chunk.length)
      yield chunk
    }
  }
  /** @type {FileLines | RecordingFile} */
  let target = lines
  try {
    const bytes = unboxed(decompressed(counted()), name, report)
    for await (const { chunk, isRecording } of withForm(bytes)) {
      if (isRecording && target === lines) target = recordings.next(lines, report)
      target.push(chunk)
    }
    target.end()
  } catch (error) {
    target.end(false)
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (error)
    report.problems.push(failures[String(code)] ?? `cannot be read (${code ?? message})`)
    report.unreadable = true
    return
  }
  if (size === 0) report.problems.push('file is empty')
}

/** Recordings among the input files: parts of one recording, or several recordings. */
class Recordings {
  #recorded
  /** @type {RecordingFile | undefined} */
  #last

  /** @param {boolean} [withOpen] see RecordedLines */
  constructor (withOpen) {
    this.#recorded = new RecordedLines(withOpen)
  }

  /** Starts the next file. @param {FileLines} lines @param {FileReport} report */
  next (lines, report) {
    this.#last?.close()
    this.#recorded.nextFile()
    this.#last = new RecordingFile(this.#recorded, lines, report)
    return this.#last
  }

  /** No more files follow: adds the remaining lines to the last one. */
  end () {
    if (this.#last === undefined) return
    this.#last.add(this.#recorded.end())
    this.#last.close()
  }
}

/** Feeds a recording to FileLines as the lines of its spans. */
class RecordingFile {
  #recorded
  #lines
  #report

  /** @param {RecordedLines} recorded @param {FileLines} lines @param {FileReport} report */
  constructor (recorded, lines, report) {
    this.#recorded = recorded
    this.#lines = lines
    this.#report = report
  }

  /** @param {Buffer} chunk */
  push (chunk) {
    this.#lines.push(Buffer.from(this.#recorded.push(chunk)))
  }

  end () {
    this.add(this.#recorded.endFile())
  }

  /** @param {{ lines: string, problems: string[] }} rest */
  add ({ lines, problems }) {
    this.#lines.push(Buffer.from(lines))
    this.#report.problems.push(...problems)
  }

  close () {
    this.#lines.end()
  }
}

/** Handles the lines of a file: passes its spans on and counts all other lines. @implements {LineHandler} */
class FileLines {
  #splitter = new LineSplitter(this)
  #report
  #reading
  #definitions = new Definitions()
  /** @type {Map<Reason, { count: number, first: number }>} */
  #skipped = new Map()
  /**
   * the latest line that is not JSON; it may be the last line, truncated
   * @type {[string, number] | undefined}
   */
  #pending
  #isBinary = false
  #isOtlp = false

  /** @param {FileReport} report @param {Reading} reading */
  constructor (report, reading) {
    this.#report = report
    this.#reading = reading
  }

  /** @param {Buffer} chunk of the file */
  push (chunk) {
    this.#splitter.push(chunk)
  }

  /** @type {LineHandler['line']} */
  line (bytes, start, end, number) {
    const head = Math.min(end, start + HEAD_BYTES)
    if (this.#reading.wants?.(bytes.toString('utf8', start, head)) === false) return
    this.#flush()
    const line = bytes.toString('utf8', start, end)
    const record = parseJson(line)
    if (record === undefined) {
      this.#pending = [line.slice(0, PENDING_CHARS), number]
      return
    }
    this.#withoutThrowing(number, () => {
      if (this.#definitions.add(record, line.length)) return
      const isOtlp = Array.isArray(record?.resourceSpans)
      this.#isOtlp ||= isOtlp
      for (const span of isOtlp ? spansOfOtlp(record) : [record]) {
        this.#withoutThrowing(number, () => this.#handle(span, number, line.length))
      }
    })
  }

  /**
   * Skips a line that throws for an unforeseen reason, so that no line aborts the file.
   * @param {number} number of the line
   * @param {() => void} work
   */
  #withoutThrowing (number, work) {
    try {
      work()
    } catch {
      this.#skip('value', number)
    }
  }

  /** @param {any} record @param {number} number @param {number} size */
  #handle (record, number, size) {
    const span = parseSpan(this.#definitions.resolve(record), size)
    if (typeof span === 'string') return this.#skip(span, number)
    if (span.facts) return this.#reading.facts?.(span)
    this.#reading.span(span, this.#report)
    this.#report.spans++
  }

  /** @param {Reason} reason @param {number} number of the line */
  #skip (reason, number) {
    this.#report.skipped++
    getOrAdd(this.#skipped, reason, () => ({ count: 0, first: number })).count++
  }

  /** @param {number} number */
  overlong (number) {
    this.#flush()
    this.#report.skipped++
    this.#report.problems.push(`line ${number} skipped: longer than ${MAX_LINE_BYTES >> 20} MB`)
  }

  /** Counts the pending line as skipped, because another line follows. */
  #flush () {
    if (this.#pending === undefined) return
    const [line, number] = this.#pending
    this.#pending = undefined
    if (number === 1 && /[\0\ufffd]/.test(line)) this.#isBinary = true
    this.#skip('json', number)
  }

  /**
   * Adds problems with the lines to the file's report.
   * @param {boolean} [isWhole] the file was read to its end
   */
  end (isWhole = true) {
    const { problems } = this.#report
    const isUnterminated = isWhole && this.#splitter.end() // the last line has no newline
    if (isUnterminated && this.#pending?.[0].startsWith('{')) {
      this.#report.skipped++
      problems.push(`line ${this.#pending[1]} skipped: the last line is truncated`)
      this.#pending = undefined
    }
    this.#flush()
    for (const [reason, { count, first }] of this.#skipped) {
      const lines = count === 1 ? `line ${first}` : `${count} lines skipped, the first is line ${first}`
      problems.push(`${lines}${count === 1 ? ' skipped' : ''}: ${reasons[reason]}`)
    }
    const { unresolved } = this.#definitions
    if (unresolved > 0) {
      const spans = unresolved === 1 ? '1 span lacks' : `${unresolved} spans lack`
      problems.push(`${spans} stacks and sites: the file defines more than is kept in memory`)
    }
    const binary = this.#isBinary ? ': a binary file, or text in an encoding other than UTF-8' : ''
    if (this.#report.spans === 0 && this.#report.skipped > 0) problems.push(`no spans found${binary}`)
    if (!this.#isOtlp) return
    problems.push("written by OpenTelemetry's file exporter: may lack what only longstack records")
  }
}

/** @param {string} name @returns {string | undefined} equal for two names of the same file */
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
