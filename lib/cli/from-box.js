'use strict'

// Reads the black boxes of running processes, in place of querying these or if they do not respond.

const { asJson, colours, print, printError, printExactly, width } = require('./terminal')
const { RefusedError, findTarget, nodeDescendants } = require('../ask/system')
const { attempt } = require('../files')
const { boxesOf } = require('../record/box-files')

const ASK_HINT = '--ask asks the process itself, which knows more than its box: stacks, addresses, awaits ' +
  'outside of requests, who waits for whom.'

/** Findings of a report about what is open. @type {string[]} */
const RULES_OF_OPEN = ['death', 'stuck', 'unanswered', 'hangs', 'grows']

/** children without a box that were named @type {Set<number>} */
const leftOut = new Set()

/**
 * Returns the black boxes of processes and of their children. Names the children that have none.
 * @param {string} word of the command line
 * @param {boolean} withChildren
 * @returns {Map<string, number>} processes by box; none if one of the processes itself has none
 */
function boxesOfTarget (word, withChildren) {
  const { pids } = attempt(() => findTarget(word)) ?? { pids: [] }
  const files = new Map(pids.flatMap((pid) => boxesOf(pid).map((file) => [file, pid])))
  if (files.size < pids.length) return new Map()
  for (const pid of withChildren ? new Set(pids.flatMap(nodeDescendants)) : []) {
    const own = boxesOf(pid)
    if (own.length === 0 && !leftOut.has(pid)) {
      leftOut.add(pid)
      printError(`longstack: process ${pid} is left out: it has no black box.`)
    }
    for (const file of own) files.set(file, pid)
  }
  return files
}

/**
 * Reads black boxes, which does not disturb their processes.
 * @param {string[]} files
 * @param {boolean} [traces] for a page
 * @returns {Promise<import('../../report/aggregate/model').Model | undefined>} undefined if one cannot be
 *   read, for example because another version writes it
 */
async function readBoxes (files, traces = false) {
  const { createModel } = require('../../report/aggregate/model')
  const model = await createModel(files, { traces })
  return model.files.some(({ unreadable }) => unreadable) ? undefined : model
}

/**
 * Prints what is open in processes, from their black boxes.
 * @param {string[]} files
 * @param {{ json: boolean, isOnce: boolean, separator: string }} options separator: from earlier text
 * @returns {Promise<{ isSilent: boolean } | undefined>} isSilent: one is stuck, or just died; undefined if
 *   one cannot be read
 */
async function printOpen (files, { json, isOnce, separator }) {
  const model = await readBoxes(files)
  if (model === undefined) return undefined
  model.verdict = model.verdict.filter(({ rule }) => RULES_OF_OPEN.includes(rule))
  const { verdict, open, openCount, handles } = model
  if (json) {
    await print(asJson({ boxes: files, verdict, open, openCount, handles }, isOnce ? 2 : 0))
  } else {
    await printExactly(separator)
    const { openText } = require('../../report/render/text')
    const text = openText(model, ASK_HINT, { colours: colours(), width: width() })
    await print(`${titleOf(files)}\n\n${text}`)
  }
  return { isSilent: verdict.some(({ rule }) => rule === 'stuck' || rule === 'death') }
}

/**
 * Makes a command that queries processes read the box of one that does not respond.
 * @param {import('./commands').Main} main
 * @returns {import('./commands').Main}
 */
function orFromBox (main) {
  return async (values, operands) => {
    try {
      const code = await main(values, operands)
      if (code === 1 && !values.json) await printBoxes(values, operands) // some part did not respond
      return code
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error
      const printFirst = () => printError(`longstack: ${error.message}`)
      if (!await printBoxes(values, operands, printFirst)) throw error
      return 1
    }
  }
}

/**
 * @param {Record<string, any>} values
 * @param {string[]} operands
 * @param {() => void} [before] called if there is a box; without it, the command has printed its own result
 * @returns {Promise<boolean>} whether there is one
 */
async function printBoxes ({ json, html }, [word], before) {
  const files = (attempt(() => findTarget(word).pids) ?? []).flatMap(boxesOf)
  if (files.length === 0) return false
  before?.()
  if (!json) await print(`\n${titleOf(files)}\n\n`)
  const { main } = require('./report')
  await main({ json }, files)
  if (before !== undefined && html !== undefined) await main({ html }, files)
  return true
}

/** @param {string[]} files boxes, perhaps within the root of their process */
const titleOf = (files) =>
  `From its black box, ${files.map((file) => file.replace(/^\/proc\/\d+\/root/, '')).join(', ')}:`

module.exports = { boxesOfTarget, orFromBox, printOpen, readBoxes, titleOf }
