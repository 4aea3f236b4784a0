'use strict'

// File access of longstack, in the program's process and in its commands.
//
// Reads file states without side effects on the program. Node keeps the results of all fs.*statSync calls in
// one array, and on Node 20 and 22 its realpathSync reads that array after other calls have written it: after
// fs.fstatSync of a pipe or socket it resolves no symbolic link (`isFileType(statValues, S_IFIFO)` in
// lib/fs.js). BigInt results go to another array, which nothing reads later.
//
// Creates, changes and removes the files below, and no others. Recognizes its own files by what it created (a
// directory of its own, the target of a link, an inode), never by a prefix of the name.
//
// - Span files, named by the user (sinks/output-file.js): created with mode 0600, appended to, never
//   removed. Recordings (record/writer.js) likewise.
// - Results of trial runs of the addon on untested platforms (stacks/trial.js): longstack/ in the user's
//   cache, or longstack-UID/ in the directory for temporary files, with mode 0700; one file per trial.
//   Written under another name and renamed, never removed.
// - LONGSTACK_SOCKET (ask/server.js): NAME.longstack/ with mode 0700, which holds a socket PID.THREAD per
//   thread, and a note PID.THREAD.busy. A process that exits removes its sockets; a process that starts
//   removes those without a listener. Each socket goes with its note, and the directory once it is empty.
//   NAME is a link to one of the sockets: its process removes it, and others replace it if nobody listens.
// - The socket of a command that queries a process (ask/threads.js): no file on Linux, elsewhere `s` in a
//   directory with mode 0700. Removed by name, then the empty directory.
// - The lock of the inspector's port (ask/port-lock.js): no file.
// - longstack profile app.js (cli/profile.js, profile/preload.js): profile.json and profile.json.part in a
//   directory with mode 0700. Removed by name, then the empty directory.
// - Output files that the user names (cli/): report --html and --trace, profile --html, --pprof and
//   --collapsed. Created with mode 0600, overwritten, never removed.
// - At installation, in the package itself (native/, lib/start/build.js): native/prebuilds/, types/, .cache/,
//   lib/start/bundle. The same scripts rebuild and replace them.
const {
  closeSync, constants, fstatSync, lstatSync, mkdirSync, openSync, readdirSync, readlinkSync, statSync
} = require('node:fs')
const { dirname } = require('node:path')

const { O_RDONLY, O_DIRECTORY = 0, O_NOFOLLOW = 0 } = constants
const OPTIONS = /** @type {{ bigint: true }} */ (Object.freeze({ bigint: true }))
const OTHERS = 0o077n // mode bits that grant access to group and others

/** Directories that list a process's open descriptors. @type {Record<string, string | undefined>} */
const descriptorDirectories = { linux: '/proc/self/fd', darwin: '/dev/fd' }
const descriptorDirectory = descriptorDirectories[process.platform]

/** @typedef {import('node:fs').BigIntStats} BigIntStats */

/** @param {number} fd @returns {BigIntStats} @throws {NodeJS.ErrnoException} */
const stateOfOpen = (fd) => fstatSync(fd, OPTIONS)

/** @param {string} path links are followed @returns {BigIntStats} @throws {NodeJS.ErrnoException} */
const stateOf = (path) => statSync(path, OPTIONS)

/** @param {string} path links are not followed @returns {BigIntStats | undefined} undefined if missing */
const stateOfName = (path) => attempt(() => lstatSync(path, OPTIONS))

/**
 * Does work that may fail because others create and remove the same files, or the program has patched a
 * function. Not for a stack that may be full: the call itself takes stack space.
 * @template T
 * @param {() => T} work
 * @returns {T | undefined} undefined if it failed
 */
function attempt (work) {
  try {
    return work()
  } catch {}
}

/**
 * Creates a directory and its parents, unless it exists. The option `recursive` of Node never returns in a
 * file system that refuses new directories with ENOENT, such as /proc.
 * @param {string} path
 * @throws {NodeJS.ErrnoException}
 */
function makeDirectory (path) {
  try {
    mkdirSync(path, 0o700)
  } catch (error) {
    if (attempt(() => stateOf(path))?.isDirectory()) return
    const isOrphan = /** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT' &&
      attempt(() => stateOf(dirname(path))) === undefined
    if (!isOrphan) throw error
    makeDirectory(dirname(path))
    makeDirectory(path)
  }
}

/**
 * Works in a directory that is not a link. On Linux, the path goes through its descriptor, so nobody can
 * replace the directory meanwhile.
 * @template Result
 * @param {string} directory
 * @param {(path: string, fd: number) => Result} work path: of the directory, valid until it returns
 * @returns {Result}
 * @throws {NodeJS.ErrnoException}
 */
function inside (directory, work) {
  const fd = openSync(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  try {
    return work(process.platform === 'linux' ? `/proc/self/fd/${fd}` : directory, fd)
  } finally {
    closeSync(fd)
  }
}

/**
 * Works in a directory that only this user may enter.
 * @template Result
 * @param {string} directory
 * @param {(path: string) => Result} work
 * @returns {Result}
 * @throws {Error} also if others may enter the directory
 */
function insidePrivate (directory, work) {
  return inside(directory, (path, fd) => {
    const { uid, mode } = stateOfOpen(fd)
    const isOwn = process.geteuid === undefined || uid === BigInt(process.geteuid())
    if (!isOwn || (mode & OTHERS) !== 0n) throw new Error(`others may enter the directory ${directory}`)
    return work(path)
  })
}

/**
 * Lists open descriptors of this process, sorted; empty if the system does not list them.
 * @param {number} max
 * @returns {number[]}
 */
function openDescriptors (max) {
  if (descriptorDirectory === undefined) return []
  try {
    return readdirSync(descriptorDirectory).map(Number).sort((a, b) => a - b).slice(0, max)
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EMFILE') return []
    // No descriptor is left to read the directory with, so there is no gap among the open ones
    const open = []
    while (open.length < max && attempt(() => stateOfOpen(open.length)) !== undefined) open.push(open.length)
    return open
  }
}

/** @param {number} fd @returns {string | undefined} path of the file; undefined if the system hides it */
function pathOfOpen (fd) {
  return process.platform === 'linux' ? attempt(() => readlinkSync(`/proc/self/fd/${fd}`)) : undefined
}

/** Files that longstack keeps open, by descriptor @type {Map<number, { dev: bigint, ino: bigint }>} */
const keptOpen = new Map()

module.exports = {
  attempt,
  inside,
  insidePrivate,
  keptOpen,
  makeDirectory,
  openDescriptors,
  pathOfOpen,
  stateOf,
  stateOfName,
  stateOfOpen
}
