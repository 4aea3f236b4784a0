'use strict'

// The files of spans: renamed as logrotate does, counted, and removed.

const fs = require('node:fs')
const path = require('node:path')
const { Definitions } = require('../../report/read/definitions')

const CHUNK = 1 << 20

/**
 * @param {string} directory that holds the file
 * @param {string} file to which spans are written
 */
function createRotation (directory, file) {
  /** Spans by route; jobs, broken lines, bytes and files. @type {Record<string, number>} */
  const counts = { upgrades: 0, jobs: 0, broken: 0, bytes: 0, files: 0 }
  const definitions = new Definitions()
  let rotations = 0
  /** Renamed, possibly still written to: counted with the rotation after. @type {string[]} */
  const renamed = []

  /** @param {any} span */
  function countSpan (span) {
    const { kind, name, attributes = {} } = span
    const route = attributes['url.path']
    const isRequest = attributes['http.request.method'] !== undefined
    if (kind === 'SERVER' && route === '/ws') counts.upgrades++
    else if (name === 'job') counts.jobs++
    else if (isRequest && kind === 'SERVER') counts[route] = (counts[route] ?? 0) + 1
    else if (isRequest) counts[`upstream ${route}`] = (counts[`upstream ${route}`] ?? 0) + 1
  }

  /** @param {string} name */
  function countFile (name) {
    counts.files++
    const descriptor = fs.openSync(name, 'r')
    const chunk = Buffer.alloc(CHUNK)
    let rest = Buffer.alloc(0)
    for (let bytes; (bytes = fs.readSync(descriptor, chunk)) > 0;) {
      counts.bytes += bytes
      const all = Buffer.concat([rest, chunk.subarray(0, bytes)])
      const end = all.lastIndexOf(10)
      if (end >= 0) for (const line of all.toString('utf8', 0, end).split('\n')) countLine(line)
      rest = all.subarray(end + 1)
    }
    if (rest.length > 0) counts.broken++
    fs.closeSync(descriptor)
    fs.unlinkSync(name)
  }

  /** @param {string} line */
  function countLine (line) {
    try {
      const record = JSON.parse(line)
      if (!definitions.add(record)) countSpan(definitions.resolve(record))
    } catch {
      counts.broken++
    }
  }

  return {
    counts,

    /** Renames the file, and counts the one renamed before. @returns {number} rotations so far */
    rotate () {
      if (!fs.existsSync(file)) return rotations
      for (const name of renamed.splice(0)) countFile(name)
      const name = path.join(directory, `spans.${++rotations}`)
      fs.renameSync(file, name)
      renamed.push(name)
      return rotations
    },

    /** Counts everything that is left; nobody writes any more. */
    finish () {
      for (const name of renamed.splice(0)) countFile(name)
      if (fs.existsSync(file)) countFile(file)
    }
  }
}

module.exports = { createRotation }
