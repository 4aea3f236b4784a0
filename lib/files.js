'use strict'

// What longstack does to files, in the process of the program and in its commands.
//
// It asks for their state so that the program does not notice. Node has one array for the answers of all
// fs.*statSync calls, and on Node 20 and 22 its realpathSync reads there what the call before left: after
// fs.fstatSync of a pipe or socket it resolves no symbolic link (`isFileType(statValues, S_IFIFO)` in
// lib/fs.js). The answers as BigInts are in another array, which nothing reads behind the call.
//
// It makes, changes and removes what follows, and nothing else. What it removes it knows by what was made (a
// directory of its own, the target of a link, an inode), never by how a name begins.
//
// - Files of spans, which the user names (sinks/output-file.js): created with mode 0600, appended to, never
//   removed. Recordings (record/writer.js) likewise.
// - Results of trials of the addon, where it was never tested (stacks/trial.js): longstack/ in the user's
//   cache, or longstack-UID/ in the directory for temporary files, of mode 0700; a file for each trial.
//   Written under another name and renamed, never removed.
// - LONGSTACK_SOCKET (ask/server.js): NAME.longstack/ of mode 0700, in it a socket
//   PID.THREAD for each thread, and a note PID.THREAD.busy. A process that ends removes its sockets, and one
//   that starts those on which nobody listens; with each goes its note, and the directory once it is empty.
//   NAME is a link to one of the sockets: removed by its process, replaced where nobody listens.
// - The socket of a command that asks a process (ask/threads.js): on Linux no file, elsewhere `s` in a
//   directory of mode 0700. Removed by name, then the empty directory.
// - The lock of the inspector's port (ask/port-lock.js): no file.
// - longstack profile app.js (cli/profile.js, profile/preload.js): profile.json and profile.json.part in a
//   directory of mode 0700. Removed by name, then the empty directory.
// - What the user names (cli/): report --html and --trace, profile --html, --pprof and --collapsed. Created
//   with mode 0600, overwritten, never removed.
// - At installation, in the package itself (native/, lib/start/build.js): native/prebuilds/, types/, .cache/,
//   lib/start/bundle. Made again, and replaced, by the same scripts.

const {
  closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readlinkSync, statSync
} = require('node:fs')

const { O_RDONLY, O_DIRECTORY = 0, O_NOFOLLOW = 0 } = constants
const OPTIONS = /** @type {{ bigint: true }} */ (Object.freeze({ bigint: true }))
const OTHERS = 0o077n // the bits of a mode that let others in

/** Lists the descriptors of the process that reads it. @type {Record<string, string | undefined>} */
const descriptorDirectories = { linux: '/proc/self/fd', darwin: '/dev/fd' }
const descriptorDirectory = descriptorDirectories[process.platform]

/** @typedef {import('node:fs').BigIntStats} BigIntStats */

/** @param {number} fd @returns {BigIntStats} @throws {NodeJS.ErrnoException} */
const stateOfOpen = (fd) => fstatSync(fd, OPTIONS)

/** @param {string} path of which links are followed @returns {BigIntStats} @throws {NodeJS.ErrnoException} */
const stateOf = (path) => statSync(path, OPTIONS)

/** @param {string} path @returns {BigIntStats | undefined} of a link itself; undefined: it is not there */
const stateOfName = (path) => attempt(() => lstatSync(path, OPTIONS))

/**
 * Does what may fail: where others make and remove the same files, or the program has replaced something.
 * Not for where the stack may be full: the call itself takes room on it.
 * @template T
 * @param {() => T} work
 * @returns {T | undefined} undefined: it has failed
 */
function attempt (work) {
  try {
    return work()
  } catch {}
}

/**
 * Works in a directory, which is no link. Linux reaches it by its descriptor: nobody can put another one in
 * its place meanwhile.
 * @template Result
 * @param {string} directory
 * @param {(path: string, fd: number) => Result} work path: of the directory; good until it returns
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
 * The same, in one that this user alone may enter.
 * @template Result
 * @param {string} directory
 * @param {(path: string) => Result} work
 * @returns {Result}
 * @throws {Error} also where others may enter it
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
 * Lists open descriptors of this process, in order; none if the system does not tell.
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

/** @param {number} fd @returns {string | undefined} its path; undefined: the system does not tell */
function pathOfOpen (fd) {
  return process.platform === 'linux' ? attempt(() => readlinkSync(`/proc/self/fd/${fd}`)) : undefined
}

/** Files that longstack keeps open, by descriptor @type {Map<number, { dev: bigint, ino: bigint }>} */
const keptOpen = new Map()

module.exports = {
  attempt, inside, insidePrivate, keptOpen, openDescriptors, pathOfOpen, stateOf, stateOfName, stateOfOpen
}
