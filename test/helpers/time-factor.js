'use strict'

// An emulated CPU (arm64.js) gets so many times the time: TIME_FACTOR=10. Of a process on it the system shows
// the emulator: that catches every signal, and Node itself reads no resident memory.

const timeFactor = Number(process.env.TIME_FACTOR) || 1

module.exports = { isEmulated: process.env.EMULATED !== undefined, timeFactor }
