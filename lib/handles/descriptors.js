'use strict'

// Open files and directories without a Node resource: descriptors of fs.open, fs.opendir, file streams and
// native code. No hook reports that they are opened, so each query lists them from the operating system.
// openers.js records the openers of fs.open and fs.openSync. Descriptors belong to the process, so the main
// thread also lists those of its workers.

const path = require('node:path')
const { isMainThread } = require('node:worker_threads')
const { contextOfNoted } = require('../core/context')
const { attempt, keptOpen, openDescriptors, pathOfOpen, stateOf, stateOfOpen } = require('../files')
const { callNative } = require('../node-objects')
const { openerOf } = require('./openers')
const { handlesOfType } = require('./subject')

const MAX_LOOKS = 10_000 // descriptors per listing, including sockets and the like
const MAX_FILES = 1000
const DELETED = ' (deleted)' // suffix of the path of an unlinked file
const LAST_STANDARD = 2 // standard error
const watchdogFile = /^\/proc\/\d+\/task\/\d+\/schedstat$/ // opened by native/watchdog.cc, one per thread

/**
 * @typedef {object} Descriptor
 * @property {number} fd
 * @property {string} key equal for the same file under the same number
 * @property {boolean} isDirectory
 * @property {string | undefined} path undefined if the system does not report it
 * @property {boolean} [isRest] it stands for all remaining ones, which were not inspected
 */

/**
 * Lists files and directories except standard streams, FileHandles and longstack's own.
 * @returns {Generator<Descriptor | undefined, void>} undefined: another kind of descriptor
 */
function * descriptors () {
  if (!isMainThread) return
  const known = new Set(handlesOfType('FILEHANDLE').map((handle) => callNative(handle, 'fd')))
  let files = 0
  for (const [i, fd] of openDescriptors(MAX_LOOKS + 1).entries()) {
    if (i === MAX_LOOKS || files === MAX_FILES) return yield restFrom(fd)
    const file = fd <= LAST_STANDARD || known.has(fd) ? undefined : look(fd)
    if (file !== undefined) files++
    yield file
  }
}

/** @param {number} fd @returns {Descriptor} */
const restFrom = (fd) => ({ fd, key: 'rest', isDirectory: false, path: undefined, isRest: true })

/** @param {number} fd @returns {Descriptor | undefined} undefined: not a file, or closed meanwhile */
function look (fd) {
  const state = attempt(() => stateOfOpen(fd))
  if (state === undefined) return undefined
  const { dev, ino } = state
  const isDirectory = state.isDirectory()
  if (!isDirectory && !state.isFile()) return undefined
  // By file, not by number: each thread opens the output itself
  if ([...keptOpen.values()].some((own) => own.dev === dev && own.ino === ino)) return undefined
  const name = pathOfOpen(fd)
  if (name !== undefined && watchdogFile.test(name)) return undefined
  return { fd, key: keyOf(fd, state), isDirectory, path: name }
}

/** @param {number} fd @param {import('../files').BigIntStats | undefined} state */
const keyOf = (fd, state) => `${fd} ${state?.dev} ${state?.ino}`

/**
 * Returns the step that opened a descriptor, if it still refers to the same file. Closes go unseen in native
 * code, and through a function taken from `fs` before longstack was enabled.
 * @param {Descriptor} descriptor
 * @returns {import('../core/context').Context | undefined}
 */
function openerContext ({ fd, key, path: present }) {
  const note = openerOf(fd)
  if (note === undefined) return undefined
  const [chain, cause, time, given] = note
  if (given === '') return undefined
  const file = path.resolve(given)
  const isThere = present === file || present === file + DELETED
  return isThere || key === keyOf(fd, attempt(() => stateOf(file))) // or it was opened through a link
    ? contextOfNoted(chain, cause, time)
    : undefined
}

module.exports = { descriptors, openerContext }
