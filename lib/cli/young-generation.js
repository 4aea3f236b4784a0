'use strict'

// V8 lets the young generation grow to a hundred megabytes, none of which a report needs, and takes a bound
// only when the process starts. So this process is replaced by itself, with one, where much is to be read:
// bench/report.js.

const fs = require('node:fs')

const LARGE_INPUT_BYTES = 256 << 20
const FLAG = '--max-semi-space-size'
const MEGABYTES = 16

/**
 * Replaces this process if the files are large and that is possible; else returns.
 * @param {string[]} files
 */
function boundYoungGeneration (files) {
  const { execve } = /** @type {any} */ (process)
  if (execve === undefined || process.platform === 'win32' || process.send !== undefined) return
  if ([...process.execArgv, process.env.NODE_OPTIONS ?? ''].some((flag) => flag.includes(FLAG))) return
  try {
    const size = files.reduce((sum, file) => sum + sizeOf(file), 0)
    if (!(size >= LARGE_INPUT_BYTES)) return
    const args = [process.argv0, `${FLAG}=${MEGABYTES}`, ...process.execArgv, ...process.argv.slice(1)]
    execve.call(process, process.execPath, args, process.env)
  } catch {} // not permitted: the report takes more memory, or says what is wrong with a file
}

/**
 * @param {string} file
 * @returns {number} bytes; NaN if the next process may not be able to read it: execve closes what is open
 */
function sizeOf (file) {
  const stat = /^\/(dev|proc)\//.test(file) ? undefined : fs.statSync(file, { throwIfNoEntry: false })
  return stat?.isFile() ? stat.size : NaN
}

module.exports = { boundYoungGeneration }
