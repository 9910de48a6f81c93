use super::*;

fn source(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

fn pool() -> Pool<IpAddr> {
    Pool::new(MOST_STRANGERS, MOST_PER_SOURCE)
}

/// A connection from this source that does `first` and then nothing more.
async fn connection(
    pool: &Pool<IpAddr>,
    last: u8,
    first: impl FnOnce(&Place<IpAddr>) + Send + 'static,
) -> AbortHandle {
    let place = pool.place(source(last));
    let number = place.number();
    let (done, is_done) = tokio::sync::oneshot::channel();
    let task = tokio::spawn(async move {
        first(&place);
        done.send(()).unwrap();
        std::future::pending::<()>().await;
        drop(place);
    });
    pool.hold(number, task.abort_handle());
    is_done.await.unwrap();
    task.abort_handle()
}

async fn silent(pool: &Pool<IpAddr>, last: u8) -> AbortHandle {
    connection(pool, last, |_| {}).await
}

async fn gave_way(watched: &AbortHandle) {
    let ended = async {
        while !watched.is_finished() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(5), ended).await.expect("it gives way");
}

fn waiting(pool: &Pool<IpAddr>) -> usize {
    lock(&pool.waiting).places.len()
}

// rule: S-22
#[tokio::test]
async fn one_source_costs_its_own_oldest_and_nobody_elses() {
    let pool = pool();
    let other = silent(&pool, 1).await;
    let oldest = silent(&pool, 2).await;
    for _ in 1..MOST_PER_SOURCE {
        silent(&pool, 2).await;
    }
    assert!(!oldest.is_finished());
    silent(&pool, 2).await;
    gave_way(&oldest).await;
    assert!(!other.is_finished());
    assert_eq!(waiting(&pool), MOST_PER_SOURCE + 1);
}

// rule: S-22
#[tokio::test]
async fn whoever_proved_who_it_is_gives_way_to_nobody() {
    let pool = pool();
    let watched = connection(&pool, 1, Place::leave).await;
    for _ in 0..=MOST_PER_SOURCE {
        silent(&pool, 1).await;
    }
    tokio::task::yield_now().await;
    assert!(!watched.is_finished());
    assert_eq!(waiting(&pool), MOST_PER_SOURCE);
}

// rule: S-22
#[tokio::test]
async fn a_newcomer_with_one_connection_is_safe_from_a_crowd_of_few_sources() {
    let pool = pool();
    let newcomer = silent(&pool, 200).await;
    for number in 0..10_000_u32 {
        silent(&pool, u8::try_from(number % 20).unwrap()).await;
    }
    tokio::task::yield_now().await;
    assert!(!newcomer.is_finished());
    assert_eq!(waiting(&pool), MOST_STRANGERS);
}

// rule: S-22
#[tokio::test]
async fn whoever_holds_a_token_gives_way_to_other_holders_and_not_to_strangers() {
    let pool = pool();
    let watched = connection(&pool, 1, Place::is_invited).await;
    for number in 0..=MOST_STRANGERS {
        silent(&pool, u8::try_from(number % 200).unwrap()).await;
    }
    tokio::task::yield_now().await;
    assert!(!watched.is_finished());
    for number in 0..MOST_INVITED {
        connection(&pool, u8::try_from(number).unwrap(), Place::is_invited).await;
    }
    gave_way(&watched).await;
    let invited = lock(&pool.waiting).places.iter().filter(|held| held.stage == Stage::Invited).count();
    assert_eq!(invited, MOST_INVITED);
}

// rule: S-22
#[tokio::test]
async fn a_place_that_was_left_frees_nobody_elses_when_its_task_ends() {
    let pool = pool();
    let task = connection(&pool, 1, Place::leave).await;
    let next = silent(&pool, 2).await;
    task.abort();
    gave_way(&task).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(waiting(&pool), 1, "the next one still counts");
    assert!(!next.is_finished());
}

// rule: S-22
#[test]
fn a_network_of_ipv6_addresses_is_one_source_and_a_mapped_address_is_what_it_maps() {
    let of = |text: &str| source_of(text.parse().unwrap());
    assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
    assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
    assert_eq!(of("::ffff:192.0.2.7"), of("192.0.2.7"));
    assert_ne!(of("192.0.2.7"), of("192.0.2.8"));
}

// rule: S-22
#[tokio::test]
async fn the_pool_has_a_bound_and_a_connection_that_ends_gives_its_place_back() {
    let pool = pool();
    for number in 0..=MOST_STRANGERS {
        silent(&pool, u8::try_from(number % 200).unwrap()).await;
    }
    assert_eq!(waiting(&pool), MOST_STRANGERS);
    let quick = Pool::new(1, 1);
    let place = quick.place(source(1));
    let (number, task) = (place.number(), tokio::spawn(async move { drop(place) }));
    quick.hold(number, task.abort_handle());
    task.await.unwrap();
    assert_eq!(waiting(&quick), 0);
}
