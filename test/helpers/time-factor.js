'use strict'

// Multiple of the timeouts for an emulated CPU (arm64.js): TIME_FACTOR=10. The system shows the emulator in
// place of such a process: it catches every signal, and Node itself does not read resident memory.

const timeFactor = Number(process.env.TIME_FACTOR) || 1

module.exports = { isEmulated: process.env.EMULATED !== undefined, timeFactor }
