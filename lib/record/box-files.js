'use strict'

// The files in a directory of black boxes (box.js).

const fs = require('node:fs')
const path = require('node:path')
const { attempt } = require('../files')
const { loadBinding } = require('../stacks/binding')
const { HEAD_MAGIC, head } = require('./box-layout')

const { O_NOFOLLOW = 0, O_NONBLOCK = 0, O_RDONLY } = fs.constants

const BOX_NAME = 'longstack'
const HEAD_BYTES = 16
const MAPPED = /^\S+ rw-s 0+ \S+ (\d+) +(\/.*\/longstack-\d+(?:\.\d+)?\.box)$/m
const MAX_BOXES = 32 // boxes of dead processes in a directory; more would fill the disk

/**
 * Lists the boxes in a directory, oldest first.
 * @param {string} directory
 * @returns {Array<{ file: string, isDead: boolean }>} isDead: its process ended abnormally
 */
function boxesIn (directory) {
  const names = fs.readdirSync(directory).filter((name) => name.endsWith('.box'))
  const boxes = names.flatMap((name) => attempt(() => boxAt(path.join(directory, name))) ?? [])
  return boxes.sort((a, b) => a.time - b.time).map(({ file, isAlive, isOver }) =>
    ({ file, isDead: !isAlive && !isOver }))
}

/** @param {string} file @returns {boolean} whether the process of a box is alive, or that is unknown */
const isAlive = (file) => attempt(() => boxAt(file)?.isAlive) ?? true

/**
 * @param {string} file
 * @returns {{ file: string, time: number, isAlive: boolean, isOver: boolean } | undefined} undefined: no box
 */
function boxAt (file) {
  const fd = fs.openSync(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  try {
    const state = fs.fstatSync(fd)
    const bytes = Buffer.alloc(HEAD_BYTES)
    if (!state.isFile() || fs.readSync(fd, bytes, 0, HEAD_BYTES, 0) < HEAD_BYTES) return undefined
    if (bytes.readUInt32LE(head.magic) !== HEAD_MAGIC) return undefined
    const isOver = bytes.readUInt32LE(head.isOver) !== 0
    const isAlive = /** @type {any} */ (loadBinding().binding)?.box?.isHeld(fd) ?? true
    return { file, time: state.mtimeMs, isAlive, isOver }
  } finally {
    fs.closeSync(fd)
  }
}

/**
 * Returns the boxes of a living process, from its memory mappings: none is renamed or removed.
 * @param {number} pid
 * @returns {string[]} at most one; none on systems without /proc
 */
function boxesOf (pid) {
  const maps = attempt(() => fs.readFileSync(`/proc/${pid}/maps`, 'latin1')) ?? ''
  const [, inode, name] = MAPPED.exec(maps) ?? []
  if (name === undefined) return []
  const inside = `/proc/${pid}/root${name}` // the file as the process, perhaps in a container, sees it
  const [own, here] = [inside, name].map((file) => attempt(() => fs.statSync(file, { bigint: true })))
  const isHere = here?.ino === BigInt(inode) && (own === undefined || own.dev === here.dev)
  if (isHere) return [name]
  return own?.ino === BigInt(inode) ? [inside] : []
}

module.exports = { BOX_NAME, MAX_BOXES, boxesIn, boxesOf, isAlive }
