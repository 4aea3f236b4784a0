'use strict'

// longstack spans: prints the spans of recordings as lines of a span file.

const { unboxed } = require('../../report/read/box-file')
const { RecordedLines } = require('../../report/read/recorded-lines')
const { follow, inOrder } = require('../../report/read/recording-file')
const { decompressed, fileFailures, open, withForm } = require('../../report/read/sources')
const { UsageError } = require('./flags')
const { printError, untilSignal, write } = require('./terminal')

const STDOUT = '-'

/** @type {import('./commands').Main} operands: files */
async function main (values, files) {
  if (values.follow && (files.length > 1 || files[0] === '-')) {
    throw new UsageError('--follow reads one file.')
  }
  const recorded = new RecordedLines()
  let isWhole = true
  for (const name of inOrder(files)) {
    const printed = await (values.follow
      ? untilSignal((signal) => printFile(name, follow(name, signal), recorded))
      : printFile(name, open(name), recorded))
    isWhole &&= printed
  }
  await printPart('', recorded.end())
  return isWhole ? 0 : 1
}

/**
 * @param {string} name
 * @param {AsyncIterable<Buffer>} source
 * @param {RecordedLines} recorded
 * @returns {Promise<boolean>} true if it is a readable recording
 */
async function printFile (name, source, recorded) {
  recorded.nextFile()
  /** @type {string[]} */
  const problems = []
  let isEmpty = true
  try {
    for await (const { chunk, isRecording } of withForm(unboxed(decompressed(source), name, { problems }))) {
      if (!isRecording) {
        printError(`longstack: ${name}: not a recording.`)
        return false
      }
      isEmpty = false
      await write(STDOUT, recorded.push(chunk))
    }
    if (isEmpty) printError(`longstack: ${name}: file is empty.`)
    const part = recorded.endFile()
    await printPart(name, { ...part, problems: [...problems, ...part.problems] })
    return !isEmpty
  } catch (error) {
    const { code = '', message } = /** @type {NodeJS.ErrnoException} */ (error)
    printError(`longstack: ${name}: ${fileFailures[code] ?? message}.`)
    return false
  }
}

/** @param {string} name empty for all files @param {{ lines: string, problems: string[] }} part */
async function printPart (name, { lines, problems }) {
  await write(STDOUT, lines)
  for (const problem of problems) printError(`longstack: ${name === '' ? '' : `${name}: `}${problem}.`)
}

module.exports = { main }
