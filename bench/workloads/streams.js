'use strict'

// The file has a size but no content, so the streams are measured, not the disk.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { pipeline } = require('node:stream/promises')
const { obey } = require('../child')

const MIB = 1 << 20
const file = path.join(process.cwd(), 'large.bin')

/** @param {number} units */
async function run (units) {
  fs.writeFileSync(file, '')
  fs.truncateSync(file, Math.max(1, Math.round(units)) * MIB)
  await pipeline(fs.createReadStream(file), fs.createWriteStream(os.devNull))
}

obey({ run })
