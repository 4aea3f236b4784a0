'use strict'

// Reads the black box of a process that does not respond.

const { print, printError } = require('./terminal')
const { RefusedError, findTarget } = require('../ask/system')
const { attempt } = require('../files')
const { boxesOf } = require('../record/box-files')

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

module.exports = { orFromBox, titleOf }
