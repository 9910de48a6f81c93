use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::io::AsyncWriteExt as _;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;

struct Authority {
    params: CertificateParams,
    key: KeyPair,
    der: CertificateDer<'static>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let der = params.self_signed(&key).unwrap().der().clone();
        Self { params, key, der }
    }

    fn digest(&self) -> Digest {
        Digest::of(self.der.as_ref())
    }

    /// A leaf for `name`, presented with the certificate `beside` it.
    fn serves(&self, name: &str, beside: &Authority) -> Arc<ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let issuer = Issuer::new(self.params.clone(), &self.key);
        let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        let chain = vec![leaf.der().clone(), beside.der.clone()];
        server(chain, PrivatePkcs8KeyDer::from(key.serialize_der()).into(), ALPN_LINK).unwrap()
    }
}

/// Both ends of a connection over a pipe: the two bindings, or why the client refused.
async fn meet(
    server: Arc<ServerConfig>,
    trust: Trust,
    alpn: &[u8],
) -> Result<(Binding, Binding), std::io::Error> {
    meet_at(server, trust, alpn, Millis(0)).await
}

async fn meet_at(
    server: Arc<ServerConfig>,
    trust: Trust,
    alpn: &[u8],
    no_earlier: Millis,
) -> Result<(Binding, Binding), std::io::Error> {
    let client = client(trust, no_earlier, alpn).unwrap();
    let (near, far) = tokio::io::duplex(64 * 1024);
    let accept = TlsAcceptor::from(server).accept(far);
    let connect = TlsConnector::from(client).connect(ServerName::try_from(SERVER_NAME).unwrap(), near);
    let (accepted, connected) = tokio::join!(accept, connect);
    let mut connected = connected?;
    let accepted = accepted?;
    connected.flush().await?;
    let export = |purpose| {
        let near = binding(connected.get_ref().1, purpose).unwrap();
        let far = binding(accepted.get_ref().1, purpose).unwrap();
        (near, far)
    };
    assert_ne!(export(Purpose::Enrol).0, export(Purpose::Session).0);
    Ok(export(Purpose::Session))
}

// rule: S-01
#[tokio::test]
async fn the_control_plane_the_token_names_is_believed() {
    let ours = Authority::new();
    let (near, far) =
        meet(ours.serves(SERVER_NAME, &ours), Trust::ByDigest(ours.digest()), ALPN_LINK).await.unwrap();
    assert_eq!(near, far);
    meet(ours.serves(SERVER_NAME, &ours), Trust::Roots(vec![ours.der.to_vec()]), ALPN_LINK).await.unwrap();
}

// rule: S-01
#[tokio::test]
async fn another_control_plane_is_refused_as_a_wrong_certificate_and_not_as_a_network_error() {
    let (ours, foreign) = (Authority::new(), Authority::new());
    for trust in [Trust::ByDigest(ours.digest()), Trust::Roots(vec![ours.der.to_vec()])] {
        let refused = meet(foreign.serves(SERVER_NAME, &foreign), trust, ALPN_LINK).await.unwrap_err();
        assert!(is_wrong_certificate(&refused), "{refused:?}");
    }
}

// rule: S-01
#[tokio::test]
async fn a_foreign_leaf_beside_the_real_ca_is_refused() {
    let (ours, foreign) = (Authority::new(), Authority::new());
    for trust in [Trust::ByDigest(ours.digest()), Trust::Roots(vec![ours.der.to_vec()])] {
        let refused = meet(foreign.serves(SERVER_NAME, &ours), trust, ALPN_LINK).await.unwrap_err();
        assert!(is_wrong_certificate(&refused), "{refused:?}");
    }
}

// rule: S-01
#[tokio::test]
async fn a_leaf_of_ours_for_another_name_is_refused() {
    let ours = Authority::new();
    let refused = meet(ours.serves("other.internal", &ours), Trust::ByDigest(ours.digest()), ALPN_LINK)
        .await
        .unwrap_err();
    assert!(is_wrong_certificate(&refused), "{refused:?}");
}

// rule: S-02
#[tokio::test]
async fn a_client_of_the_other_protocol_gets_no_connection() {
    let ours = Authority::new();
    assert!(meet(ours.serves(SERVER_NAME, &ours), Trust::ByDigest(ours.digest()), ALPN_API).await.is_err());
}

// rule: S-04
#[tokio::test]
async fn two_connections_have_two_bindings() {
    let ours = Authority::new();
    let config = ours.serves(SERVER_NAME, &ours);
    let first = meet(Arc::clone(&config), Trust::ByDigest(ours.digest()), ALPN_LINK).await.unwrap();
    let second = meet(config, Trust::ByDigest(ours.digest()), ALPN_LINK).await.unwrap();
    assert_ne!(first.0, second.0);
}

// rule: S-18
#[tokio::test]
async fn a_certificate_is_judged_at_the_later_time_and_not_by_a_clock_that_stands_behind() {
    let ours = Authority::new();
    let issuer = Issuer::new(ours.params.clone(), &ours.key);
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![SERVER_NAME.to_owned()]).unwrap();
    (params.not_before, params.not_after) =
        (rcgen::date_time_ymd(2100, 1, 1), rcgen::date_time_ymd(2101, 1, 1));
    let leaf = params.signed_by(&key, &issuer).unwrap();
    let chain = vec![leaf.der().clone(), ours.der.clone()];
    let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    let config = server(chain, key, ALPN_LINK).unwrap();
    // The system's clock says some year long before 2100; the control plane told of May 2100.
    let told = Millis(4_112_000_000_000);
    for (no_earlier, believed) in [(Millis(0), false), (told, true), (Millis(told.0 + 40_000_000_000), false)]
    {
        for trust in [Trust::ByDigest(ours.digest()), Trust::Roots(vec![ours.der.to_vec()])] {
            let met = meet_at(Arc::clone(&config), trust, ALPN_LINK, no_earlier).await;
            assert_eq!(met.is_ok(), believed, "{no_earlier:?}: {met:?}");
        }
    }
}
