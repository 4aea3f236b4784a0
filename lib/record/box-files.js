'use strict'

// The files in a directory of black boxes (box.js).

const fs = require('node:fs')
const path = require('node:path')
const { attempt } = require('../files')
const { loadBinding } = require('../stacks/binding')

const BOX_NAME = 'longstack'
const MAX_BOXES = 32 // of the dead in a directory; more would fill the disk

/**
 * Lists the boxes in a directory, oldest first.
 * @param {string} directory
 * @returns {Array<{ file: string, isAlive: boolean }>} isAlive: its process may live
 */
function boxesIn (directory) {
  const names = fs.readdirSync(directory).filter((name) => name.endsWith('.box'))
  const files = names.map((name) => path.join(directory, name))
  const timeOf = (/** @type {string} */ file) => attempt(() => fs.statSync(file).mtimeMs) ?? 0
  return files.map((file) => ({ file, time: timeOf(file) })).sort((a, b) => a.time - b.time)
    .map(({ file }) => ({ file, isAlive: isAlive(file) }))
}

/** @param {string} file @returns {boolean} whether the process of a box lives, or that is unknown */
function isAlive (file) {
  return attempt(() => {
    const fd = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW)
    try {
      return /** @type {any} */ (loadBinding().binding).box.isHeld(fd)
    } finally {
      fs.closeSync(fd)
    }
  }) ?? true
}

module.exports = { BOX_NAME, MAX_BOXES, boxesIn, isAlive }
