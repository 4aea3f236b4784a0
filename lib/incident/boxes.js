'use strict'

// longstack PID of processes with a black box: reads their memory, and disturbs none of them.

const { createModel } = require('../../report/aggregate/model')
const { nodeDescendants } = require('../ask/system')
const { boxesOf } = require('../record/box-files')

/**
 * Returns the black boxes of processes and of their children.
 * @param {number[]} pids
 * @param {boolean} withChildren
 * @returns {string[]} none if one of the processes itself has none
 */
function boxesOfAll (pids, withChildren) {
  const boxes = pids.map(boxesOf)
  if (boxes.some((own) => own.length === 0)) return []
  const children = withChildren ? pids.flatMap(nodeDescendants) : []
  return [...new Set([...boxes, ...children.map(boxesOf)].flat())]
}

/**
 * @param {import('./observation').Observation} observation
 * @param {string[]} files boxes
 * @param {boolean} traces for a page
 * @returns {Promise<boolean>} false: one cannot be read, for example because another version writes it
 */
async function readBoxes (observation, files, traces) {
  const report = await createModel(files, { traces })
  if (report.files.some(({ unreadable, problems }) => unreadable || problems.length > 0)) return false
  observation.report = report
  observation.boxes = files
  if (report.span !== undefined) observation.ms = report.span.toUnixMs - report.span.fromUnixMs
  return true
}

module.exports = { boxesOfAll, readBoxes }
