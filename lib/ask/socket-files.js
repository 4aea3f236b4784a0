'use strict'

// The files of LONGSTACK_SOCKET, as protocol.js names them. Only this user may enter the directory. The table
// in files.js says who removes what. A command may connect by NAME, and finds the others in the directory.

const fs = require('node:fs')
const net = require('node:net')
const path = require('node:path')
const { threadId } = require('node:worker_threads')
const guard = require('../core/guard')
const { inside, insidePrivate, stateOfName } = require('../files')
const { closeUnopened } = require('../standard-error')
const { directoryOf, nameOf, noteOf, parseName } = require('./protocol')

const MAX_TRIES = 3 // a process that ends may remove the directory that was just found
const HOST_NAMESPACE = 0xeffffffc // PROC_PID_INIT_INO in include/linux/proc_ns.h

/** @typedef {NodeJS.ErrnoException} SystemError */

class SocketFiles {
  #name
  #directory
  /** the target of the link that leads here */
  #target
  #namespace = namespace()
  #own = nameOf({ pid: process.pid, threadId, namespace: this.#namespace })

  /** @param {string} name */
  constructor (name) {
    this.#name = path.resolve(name)
    this.#directory = directoryOf(this.#name)
    this.#target = `${path.basename(this.#directory)}/${this.#own}`
  }

  /**
   * Listens in the directory. The socket has another name until it has its mode; libuv removes what had that
   * name when the server closes, so no file ever has it again.
   * @param {(file: string) => void} listen
   * @throws {SystemError} where the directory cannot be made or is not this user's alone
   */
  open (listen) {
    for (let tries = 1; ; tries++) {
      try {
        if (stateOfName(this.#directory) === undefined) fs.mkdirSync(this.#directory, 0o700)
        return insidePrivate(this.#directory, (directory) => {
          const first = `${directory}/${this.#own}.${process.hrtime.bigint()}`
          listen(first)
          fs.chmodSync(first, 0o600)
          fs.renameSync(first, `${directory}/${this.#own}`)
          unlink(noteOf(`${directory}/${this.#own}`)) // of a process that had this number
        })
      } catch (error) {
        const { code } = /** @type {SystemError} */ (error)
        if (tries === MAX_TRIES || (code !== 'ENOENT' && code !== 'EEXIST')) throw error
      }
    }
  }

  /**
   * Gives this process the name, unless a living one has it.
   * @param {(sentence: string) => void} refuse the name is of something else
   */
  link (refuse) {
    try {
      fs.symlinkSync(this.#target, this.#name)
    } catch (error) {
      const { code, message } = /** @type {SystemError} */ (error)
      const target = targetOf(this.#name)
      if (target === undefined || path.dirname(target) !== path.dirname(this.#target)) {
        return refuse(code === 'EEXIST' ? 'a file has that name' : message)
      }
      whenNobodyListens(this.#name, () => {
        if (targetOf(this.#name) !== target) return // another process was faster
        fs.unlinkSync(this.#name)
        fs.symlinkSync(this.#target, this.#name)
      })
    }
  }

  /** Removes sockets of threads that are gone, on which nobody listens, and what they noted. */
  sweep () {
    const names = fs.readdirSync(this.#directory)
    for (const name of names.filter((other) => other !== this.#own)) {
      const file = path.join(this.#directory, name)
      const socket = /^(.*)\.busy$/s.exec(name)?.[1]
      if (socket !== undefined && !names.includes(socket)) {
        insidePrivate(this.#directory, (directory) => unlink(`${directory}/${name}`))
      }
      const state = stateOfName(file)
      if (state?.isSocket() !== true) continue
      whenNobodyListens(file, () => insidePrivate(this.#directory, (directory) => {
        if (stateOfName(`${directory}/${name}`)?.ino === state.ino) unlinkWithNote(`${directory}/${name}`)
      }))
    }
  }

  /**
   * Runs `work` with the name of the note that this thread may leave. Asks for the state of no file: that is
   * done amid of what blocks, which may be reading the answer to such a question of its own.
   * @param {(file: string) => void} work
   */
  withNote (work) {
    inside(this.#directory, (directory) => work(noteOf(`${directory}/${this.#own}`)))
  }

  /**
   * Removes what this thread has made. The main thread ends with all others, of which Node calls nothing when
   * they are terminated: so it removes what they have made, too.
   */
  remove () {
    if (targetOf(this.#name) === this.#target) unlink(this.#name)
    insidePrivate(this.#directory, (directory) => {
      for (const name of threadId === 0 ? fs.readdirSync(directory) : [this.#own]) {
        const { pid, namespace } = parseName(name) ?? {}
        if (pid !== process.pid || namespace !== this.#namespace) continue
        if (stateOfName(`${directory}/${name}`)?.isSocket()) unlinkWithNote(`${directory}/${name}`)
      }
    })
    fs.rmdirSync(this.#directory) // unless others are there
  }
}

/** @returns {string | undefined} of this process's number, where it is a container's */
function namespace () {
  const inode = Number(/\d+/.exec(targetOf('/proc/self/ns/pid') ?? '')?.[0] ?? HOST_NAMESPACE)
  return inode === HOST_NAMESPACE ? undefined : inode.toString(36)
}

/** @param {string} name @returns {string | undefined} what a link leads to; undefined: it is none */
function targetOf (name) {
  try {
    return fs.readlinkSync(name)
  } catch {
    return undefined
  }
}

/** @param {string} file */
function unlink (file) {
  try {
    fs.unlinkSync(file)
  } catch {}
}

/** @param {string} socket */
function unlinkWithNote (socket) {
  unlink(socket)
  unlink(noteOf(socket))
}

/** @param {string} file of a socket @param {() => void} work */
function whenNobodyListens (file, work) {
  const probe = net.connect(file)
  closeUnopened(probe)
  probe.on('connect', () => guard.run(() => probe.destroy())).on('error', (error) => guard.run(() => {
    const { code } = /** @type {SystemError} */ (error)
    if (code !== 'ECONNREFUSED' && code !== 'ENOENT') return
    try {
      work()
    } catch {} // another process does the same
  })).unref()
}

module.exports = { SocketFiles }
