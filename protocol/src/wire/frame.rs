//! Frames in a byte stream: four bytes of length, big-endian, then one value. The length is judged before anything
//! is reserved for it.

use bytes::{Buf as _, BufMut as _, BytesMut};
use tokio_util::codec::{Decoder, Encoder};

use super::codec::{self, DecodeError};
use crate::envelope::Frame;

/// The most bytes of a frame.
pub const MOST: usize = 256 * 1024;
/// The most bytes of a frame before anybody is known.
pub const MOST_GREETING: usize = 4 * 1024;

/// Why a stream of bytes is not a stream of frames.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// A frame claims, or a value has, more bytes than are taken here.
    #[error("a frame of {length} bytes, at most {most} are taken here")]
    TooLong {
        /// What it claims.
        length: usize,
        /// What is taken.
        most: usize,
    },
    /// A frame holds something else.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The stream itself failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Cuts a stream into frames.
#[derive(Debug)]
pub struct FrameCodec {
    most: usize,
}

impl FrameCodec {
    /// One that takes frames of up to `most` bytes.
    pub const fn new(most: usize) -> Self {
        Self { most }
    }

    /// Takes frames of up to `most` bytes from now on.
    pub const fn set_most(&mut self, most: usize) {
        self.most = most;
    }
}

impl Decoder for FrameCodec {
    type Item = Frame;
    type Error = FrameError;

    fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        let Some(head) = buffer.first_chunk::<4>() else { return Ok(None) };
        let length = usize::try_from(u32::from_be_bytes(*head)).unwrap_or(usize::MAX);
        if length > self.most {
            return Err(FrameError::TooLong { length, most: self.most });
        }
        if buffer.len() < length + 4 {
            buffer.reserve((length + 4 - buffer.len()).min(16 * 1024));
            return Ok(None);
        }
        buffer.advance(4);
        let frame = codec::decode(&buffer.split_to(length))?;
        Ok(Some(frame))
    }
}

impl Encoder<&Frame> for FrameCodec {
    type Error = FrameError;

    fn encode(&mut self, frame: &Frame, buffer: &mut BytesMut) -> Result<(), FrameError> {
        let bytes = codec::encode(frame);
        let length = u32::try_from(bytes.len()).ok().filter(|_| bytes.len() <= MOST);
        let Some(length) = length else {
            return Err(FrameError::TooLong { length: bytes.len(), most: MOST });
        };
        buffer.reserve(bytes.len() + 4);
        buffer.put_u32(length);
        buffer.extend_from_slice(&bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
