//! Frames over a stream, with a deadline for each: a side that is slow or silent costs a bounded time.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::time::timeout;
use tokio_util::bytes::BytesMut;
use tokio_util::codec::{Decoder as _, Encoder as _};

use super::frame::{FrameCodec, FrameError, MOST};
use crate::envelope::{Answer, Frame};
use crate::refusal::Refusal;

/// How long one frame may take to be sent whole; and a greeting to arrive.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Why a connection is of no more use.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The other side closed it, between two frames.
    #[error("the other side closed the connection")]
    Closed,
    /// The other side closed it in the middle of a frame.
    #[error("the connection broke off in the middle of a message")]
    Cut,
    /// Nothing came, or nothing was taken, for that long.
    #[error("nothing moved on the connection for {} s", .0.as_secs())]
    Silent(Duration),
    /// What came is no frame, or too long.
    #[error(transparent)]
    Frame(FrameError),
    /// The stream failed.
    #[error("the connection failed")]
    Io(#[source] std::io::Error),
}

impl From<FrameError> for WireError {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Io(error) => error.into(),
            error @ (FrameError::TooLong { .. } | FrameError::Decode(_)) => Self::Frame(error),
        }
    }
}

impl From<std::io::Error> for WireError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            // A peer that goes without TLS's own goodbye is a peer that went.
            std::io::ErrorKind::UnexpectedEof
            | std::io::ErrorKind::ConnectionReset
            | std::io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

/// Both halves of a stream of frames.
#[derive(Debug)]
pub struct Connection<S> {
    reader: Reader<S>,
    writer: Writer<S>,
}

/// The half that receives.
#[derive(Debug)]
pub struct Reader<S> {
    stream: ReadHalf<S>,
    codec: FrameCodec,
    buffer: BytesMut,
}

/// The half that sends.
#[derive(Debug)]
pub struct Writer<S> {
    stream: WriteHalf<S>,
    codec: FrameCodec,
    buffer: BytesMut,
}

impl<S: AsyncRead + AsyncWrite> Connection<S> {
    /// Frames over `stream`; takes frames of up to `most` bytes and sends any that the wire knows.
    pub fn new(stream: S, most: usize) -> Self {
        let (read, write) = tokio::io::split(stream);
        Self {
            reader: Reader { stream: read, codec: FrameCodec::new(most), buffer: BytesMut::new() },
            writer: Writer { stream: write, codec: FrameCodec::new(MOST), buffer: BytesMut::new() },
        }
    }

    /// Takes frames of up to `most` bytes from now on.
    pub const fn set_most(&mut self, most: usize) {
        self.reader.codec.set_most(most);
    }

    /// The next frame, which must be whole within `within`.
    pub async fn receive(&mut self, within: Duration) -> Result<Frame, WireError> {
        self.reader.receive(within).await
    }

    /// Sends a frame, flushed.
    pub async fn send(&mut self, frame: &Frame) -> Result<(), WireError> {
        self.writer.send(frame).await
    }

    /// Answers whatever is asked first with `refusal`, for somebody who gets nothing else. Takes as long as a greeting may.
    pub async fn turn_away(mut self, refusal: Refusal) {
        if let Ok(Frame::Request(request)) = self.receive(PATIENCE).await {
            let answer = Answer { re: request.id, result: Err(refusal) };
            // A peer that left meanwhile needs no answer.
            drop(self.send(&Frame::Answer(answer)).await);
        }
    }

    /// The two halves, each on its own.
    pub fn split(self) -> (Reader<S>, Writer<S>) {
        (self.reader, self.writer)
    }
}

impl<S: AsyncRead> Reader<S> {
    /// The next frame, which must be whole within `within`. Dropping the future loses nothing that was read.
    pub async fn receive(&mut self, within: Duration) -> Result<Frame, WireError> {
        timeout(within, self.next()).await.map_err(|_| WireError::Silent(within))?
    }

    async fn next(&mut self) -> Result<Frame, WireError> {
        loop {
            if let Some(frame) = self.codec.decode(&mut self.buffer)? {
                if self.buffer.is_empty() {
                    // An idle connection keeps no buffer.
                    self.buffer = BytesMut::new();
                }
                return Ok(frame);
            }
            self.buffer.reserve(1024);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(if self.buffer.is_empty() { WireError::Closed } else { WireError::Cut });
            }
        }
    }
}

impl<S: AsyncWrite> Writer<S> {
    /// Sends a frame, flushed. A side that does not take it within [`PATIENCE`] is given up.
    pub async fn send(&mut self, frame: &Frame) -> Result<(), WireError> {
        self.buffer.clear();
        self.codec.encode(frame, &mut self.buffer)?;
        let write = async {
            self.stream.write_all(&self.buffer).await?;
            self.stream.flush().await
        };
        timeout(PATIENCE, write).await.map_err(|_| WireError::Silent(PATIENCE))??;
        if self.buffer.capacity() > 16 * 1024 {
            self.buffer = BytesMut::new();
        }
        Ok(())
    }

    /// Says goodbye and closes this half.
    pub async fn close(&mut self) {
        // A peer that is gone already needs no goodbye.
        let _ = timeout(Duration::from_secs(1), self.stream.shutdown()).await;
    }
}

#[cfg(test)]
mod tests;
